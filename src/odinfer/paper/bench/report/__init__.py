"""Tables, figures and findings of a benchmark grid, and the page with them."""

"""What the data say about an equation, in the words of a fit."""

CONSISTENT, CONTRADICTS, NOT_JUDGED = "consistent", "contradicts the data", "not judged"

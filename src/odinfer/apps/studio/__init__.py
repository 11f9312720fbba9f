"""`odinfer studio`: a local web page for data, models, fits and comparisons.

`server.py` has the routes, `access.py` decides which requests are admitted, and `sessions.py` keeps the data and jobs
of a tab. Everything that touches input of a user runs in processes of `worker_process.py`: `interactive.py` reads
tables and equations, `initial_guess.py` finds slider values, `jobs.py` runs fits, comparisons and intervals.
`javascript.py` translates a model, so that trajectories follow sliders without the server; `scripts.py` writes the
same as commands and Python. The page itself is in `page/`. Starlette and uvicorn are the extra `studio`.
"""

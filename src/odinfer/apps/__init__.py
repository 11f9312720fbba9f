"""Programs for users: the command line, the browser page (`studio`) and fits of many series (`each`).

Depends on everything else; nothing else depends on it.
"""

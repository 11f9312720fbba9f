"""The command `odinfer`: flags and files in, tables and files out, exceptions to exit codes.

`cli` and `bench` are the commands, `flags` turns files and flags into a Problem, `terminal` is all that is printed
besides results. Imports from everywhere.
"""

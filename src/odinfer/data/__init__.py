"""Read tables from CSV files, Excel sheets and DataFrames as `Data`.

Each source becomes a `Table` of text cells, as if all were CSV (`csv_file.py`, `excel_file.py`, `frame.py`;
`reader.py` chooses). `column_roles.py` finds the column of times and those that mark experiments, `cells.py` and
`dates.py` make numbers of text, `dosing_columns.py` doses of rows, and `table.py` makes `Data`.
"""

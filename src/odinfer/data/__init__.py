"""Read tables from CSV files, Excel sheets and DataFrames as `Data`.

Each source becomes a `Table` of text cells, as if all were CSV (`csv_file`, `excel_file`, `frame`; `read` picks one).
`roles` says which column is the time or marks experiments, `cells` and `dates` make numbers of text, `doses` makes
doses of rows, `table` puts the series together, and `pose` joins them with a model to a Problem. Imports only from
`problem`, `style` and the top.
"""

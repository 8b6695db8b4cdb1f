"""Pure rules: names, layout, types, schema difference, job ids. Standard library and unidecode."""

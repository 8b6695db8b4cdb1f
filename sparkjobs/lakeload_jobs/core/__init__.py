"""Pure rules shared by both sides: names, keys, types, sizes, job ids."""

"""The recurrent state: between segments, row by row, of packed sequences."""

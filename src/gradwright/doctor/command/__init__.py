"""The command line: `gradwright doctor`, `explain`, `rules`, `--fix`."""

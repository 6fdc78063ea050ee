"""A batch cut along time: where time lies, how long segments are."""

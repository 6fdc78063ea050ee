"""From evidence to fixes: which rewrite of the user's source removes the cause."""

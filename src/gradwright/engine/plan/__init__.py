"""Reading the graph below the losses: who reaches what, where it may be cut."""

def gather(stage, values):
    """Named copies of the values of a step, ready for the logger."""
    return {f"{stage}/{name}": value.detach() for name, value in values.items()}

class RunningScale:
    """Divides by a running mean, so that the bonus stays around one."""

    def __init__(self, eps=1e-3):
        self.mean, self.count, self.eps = 1.0, 1, eps

    def __call__(self, value):
        self.count += 1
        self.mean = self.mean + (value - self.mean) / self.count
        return value / (self.mean + self.eps)

import random

import torch

random.seed(4)


class Album:
    """Gives the judge a mix of fresh and older translations."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.pages = []

    def query(self, pictures):
        shown = []
        for picture in pictures.detach():
            if len(self.pages) < self.capacity:
                self.pages.append(picture)
                shown.append(picture.detach())
            elif random.random() < 0.5:
                slot = random.randrange(self.capacity)
                old, self.pages[slot] = self.pages[slot], picture
                shown.append(old)
            else:
                shown.append(picture.detach())
        return torch.stack(shown)

"""A data set for PyTorch: joint forces row by row, in the workers that load them."""

import torch


class TorqueRows(torch.utils.data.Dataset):
    """Joint forces of motions, computed by whoever asks."""

    def __init__(self, function, tensors):
        self.function, self.tensors = function, tensors

    def __len__(self):
        return len(self.tensors[0])

    def __getitem__(self, k):
        return self.function(*(x[k] for x in self.tensors))

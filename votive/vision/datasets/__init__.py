"""Data sets of images: MNIST and its kin, CIFAR, folders, noise. Samples are (PIL image, label)."""

from .base import VisionDataset
from .cifar import CIFAR10, CIFAR100
from .fake import FakeData
from .folder import IMG_EXTENSIONS, DatasetFolder, ImageFolder
from .mnist import KMNIST, MNIST, FashionMNIST, read_idx

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "DatasetFolder",
    "FakeData",
    "FashionMNIST",
    "IMG_EXTENSIONS",
    "ImageFolder",
    "KMNIST",
    "MNIST",
    "VisionDataset",
    "read_idx",
]

"""Augmentations that mix batches or choose for themselves."""

from __future__ import annotations

import numpy as np
import pytest

import votive
from tests.vision import functional_cases as cases
from tests.vision.reference import torchvision
from votive.vision import transforms as T
from votive.vision import tv_tensors
from votive.vision.transforms import functional as F


def test_mixup_and_cutmix_mix_neighbours_in_proportion() -> None:
    votive.manual_seed(3)
    images = votive.arange(4.0).reshape(4, 1, 1, 1).expand(4, 3, 10, 10).clone()
    labels = votive.tensor([0, 1, 2, 3])
    mixed, soft = T.MixUp(alpha=0.7, num_classes=4)(images, labels)
    share = soft[1, 1].item()
    assert soft[1].tolist() == pytest.approx([1 - share, share, 0, 0])
    assert votive.allclose(mixed[1], votive.full((3, 10, 10), share))
    assert 0 < share < 1
    sizes = set()
    for _ in range(10):
        cut, soft = T.CutMix(num_classes=4)({"x": images, "labels": labels}).values()
        own = (cut[2] == 2).float().mean().item()
        assert set(cut[2].flatten().tolist()) <= {1.0, 2.0}
        assert soft[2, 2].item() == pytest.approx(own, abs=1e-6)
        sizes.add(own)
    assert len(sizes) > 3
    onehot = votive.eye(4)
    assert T.MixUp()(images, onehot)[1].shape == (4, 4)


@pytest.mark.parity
@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_mixing_agrees_with_torchvision(name: str) -> None:
    torchvision()
    import torch
    from torchvision.transforms import v2

    array = np.stack([cases.image("float32", seed=s) for s in range(4)])
    labels = np.array([0, 2, 1, 2])
    ours, theirs = getattr(T, name)(num_classes=3), getattr(v2, name)(num_classes=3)
    votive.manual_seed(0)
    params = ours.make_params([votive.from_numpy(array)])
    theirs.make_params = lambda flat: params
    ours.make_params = lambda flat: params
    got = ours(votive.from_numpy(array), votive.from_numpy(labels))
    expected = theirs(torch.from_numpy(array), torch.from_numpy(labels))
    for a, b in zip(got, expected):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)


AUGMENTS = {
    "auto": (lambda m: m.AutoAugment(), "AUTO", "AutoAugment", 10),
    "rand": (lambda m: m.RandAugment(), "RAND", "RandAugment", 31),
    "trivial": (lambda m: m.TrivialAugmentWide(), "TRIVIAL", "TrivialAugmentWide", 31),
    "augmix": (lambda m: m.AugMix(), "AUGMIX", "AugMix", 10),
}


@pytest.mark.parity
@pytest.mark.parametrize("which", AUGMENTS)
def test_automatic_augmentations_have_torchvisions_operations_and_strengths(which: str) -> None:
    torchvision()
    import torch
    from torchvision.transforms import v2

    from votive.vision.transforms import policies
    from votive.vision.transforms.auto_augment import strengths

    make, space, name, bins = AUGMENTS[which]
    ours, theirs = make(T), make(v2)
    table = getattr(policies, space)
    reference = getattr(v2, name)._AUGMENTATION_SPACE
    assert set(table) == set(reference)
    images = [
        (votive.from_numpy(cases.image()), torch.from_numpy(cases.image())),
        (votive.from_numpy(cases.image("float32")), torch.from_numpy(cases.image("float32"))),
    ]
    for op, (values, signed) in reference.items():
        range_ = table[op]
        expected = values(bins, 24, 31)
        mine = strengths(range_, bins, 24, 31, op == "Posterize")
        if expected is None:
            assert mine is None
            continue
        assert range_[2] == signed
        np.testing.assert_allclose(mine, expected.numpy(), rtol=1e-6)
        for strength in (float(mine[2]), -float(mine[-1]) if signed else float(mine[-1])):
            for a, b in images:
                got = ours.apply(a, [(op, strength)])
                want = theirs._apply_image_or_video_transform(b, op, strength, theirs.interpolation, theirs._fill)
                if got.dtype is votive.uint8 and which == "augmix":
                    # Bilinear samples that fall between two bytes: sums are in another order.
                    apart = np.abs(got.numpy().astype(int) - want.numpy())
                    assert apart.max() <= 1
                    assert (apart > 0).mean() < 0.01
                elif got.dtype is votive.uint8:
                    np.testing.assert_array_equal(got.numpy(), want.numpy(), op)
                else:
                    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-4, err_msg=op)


@pytest.mark.parity
def test_the_policies_of_auto_augment_are_torchvisions() -> None:
    torchvision()
    from torchvision.transforms import v2

    for policy in v2.AutoAugmentPolicy:
        mine = T.AutoAugment(T.AutoAugmentPolicy(policy.value))
        expected = [[tuple(step) for step in pair] for pair in v2.AutoAugment(policy)._policies]
        assert mine._policies == expected


def test_automatic_augmentations_change_images_and_reach_every_operation() -> None:
    votive.manual_seed(0)
    image = votive.from_numpy(cases.image())
    for augment in (T.AutoAugment(), T.RandAugment(), T.TrivialAugmentWide(), T.AugMix()):
        results = [augment(image) for _ in range(12)]
        assert all(r.shape == image.shape and r.dtype is votive.uint8 for r in results)
        assert sum(not votive.equal(r, image) for r in results) >= 6
    names = {s[0] for _ in range(300) for s in T.RandAugment().make_steps(24, 31)}
    assert len(names) == 14
    depths = {len(T.AugMix().make_steps(24, 31)) for _ in range(60)}
    assert depths == {1, 2, 3}
    with pytest.raises(TypeError, match="does not take Mask"):
        T.RandAugment()(image, tv_tensors.Mask(cases.mask()))
    with pytest.raises(TypeError, match="needs one picture"):
        T.RandAugment()("nothing")


def test_augmix_of_equal_parts_is_the_mean() -> None:
    image = votive.from_numpy(cases.image("float32"))
    mix = T.AugMix(mixture_width=2)
    parts = votive.full((1, 2), 0.25)
    out = mix.mixed(image, [[("AutoContrast", 0.0)], [("Equalize", 0.0)]], votive.tensor([0.5]), parts)
    expected = image / 2 + F.autocontrast(image) / 4 + F.equalize(image) / 4
    assert votive.allclose(out, expected, atol=1e-6)

"""What the automatic augmentations may do, and how strongly. Tables from the papers.

A range of strengths is (low, high, signed); those that are signed are negative half of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

# A strength, or a side of the image ("width" or "height") and a factor.
Bound = float | tuple[str, float]
# The strength at the first step, at the last step, and whether it is signed.
Range = tuple[float, Bound, bool]
# Operations and their strengths; None for those that have none.
Space = dict[str, Range | None]

_COLOURS = ("Brightness", "Color", "Contrast", "Sharpness")


def _space(
    shear: float,
    translate: tuple[Bound, Bound],
    rotate: float,
    colour: float,
    bits: tuple[int, int],
    more: Sequence[str],
) -> Space:
    across, down = translate
    return {
        "ShearX": (0.0, shear, True),
        "ShearY": (0.0, shear, True),
        "TranslateX": (0.0, across, True),
        "TranslateY": (0.0, down, True),
        "Rotate": (0.0, rotate, True),
        **dict.fromkeys(_COLOURS, (0.0, colour, True)),
        "Posterize": (*bits, False),
        "Solarize": (1.0, 0.0, False),
        "AutoContrast": None,
        "Equalize": None,
        **dict.fromkeys(more),
    }


_LIKE_331 = (("width", 150.0 / 331.0), ("height", 150.0 / 331.0))
# Cubuk et al. 2019, table 6.
AUTO = _space(0.3, _LIKE_331, 30.0, 0.9, (8, 4), ("Invert",))
# Cubuk et al. 2020, section 3.
RAND = _space(0.3, _LIKE_331, 30.0, 0.9, (8, 4), ("Identity",))
# Müller and Hutter 2021, table 1.
TRIVIAL = _space(0.99, (32.0, 32.0), 135.0, 0.99, (8, 2), ("Identity",))
# Hendrycks et al. 2020.
AUGMIX = _space(0.3, (("width", 1 / 3), ("height", 1 / 3)), 30.0, 0.9, (4, 0), ())
AUGMIX_PARTIAL: Space = {name: v for name, v in AUGMIX.items() if name not in _COLOURS}


def _sub_policies(text: str) -> list[list[tuple[str, float, int | None]]]:
    """Lines of two operations, each `Name probability step`; a dash for no step."""
    found = []
    for line in text.strip().splitlines():
        parts: Sequence[str] = line.split()
        found.append(
            [(parts[k], float(parts[k + 1]), None if parts[k + 2] == "-" else int(parts[k + 2])) for k in (0, 3)]
        )
    return found


# The policies that AutoAugment found, Cubuk et al. 2019, tables 7 to 9.
IMAGENET = _sub_policies("""
Posterize 0.4 8 Rotate 0.6 9
Solarize 0.6 5 AutoContrast 0.6 -
Equalize 0.8 - Equalize 0.6 -
Posterize 0.6 7 Posterize 0.6 6
Equalize 0.4 - Solarize 0.2 4
Equalize 0.4 - Rotate 0.8 8
Solarize 0.6 3 Equalize 0.6 -
Posterize 0.8 5 Equalize 1.0 -
Rotate 0.2 3 Solarize 0.6 8
Equalize 0.6 - Posterize 0.4 6
Rotate 0.8 8 Color 0.4 0
Rotate 0.4 9 Equalize 0.6 -
Equalize 0.0 - Equalize 0.8 -
Invert 0.6 - Equalize 1.0 -
Color 0.6 4 Contrast 1.0 8
Rotate 0.8 8 Color 1.0 2
Color 0.8 8 Solarize 0.8 7
Sharpness 0.4 7 Invert 0.6 -
ShearX 0.6 5 Equalize 1.0 -
Color 0.4 0 Equalize 0.6 -
Equalize 0.4 - Solarize 0.2 4
Solarize 0.6 5 AutoContrast 0.6 -
Invert 0.6 - Equalize 1.0 -
Color 0.6 4 Contrast 1.0 8
Equalize 0.8 - Equalize 0.6 -
""")

CIFAR10 = _sub_policies("""
Invert 0.1 - Contrast 0.2 6
Rotate 0.7 2 TranslateX 0.3 9
Sharpness 0.8 1 Sharpness 0.9 3
ShearY 0.5 8 TranslateY 0.7 9
AutoContrast 0.5 - Equalize 0.9 -
ShearY 0.2 7 Posterize 0.3 7
Color 0.4 3 Brightness 0.6 7
Sharpness 0.3 9 Brightness 0.7 9
Equalize 0.6 - Equalize 0.5 -
Contrast 0.6 7 Sharpness 0.6 5
Color 0.7 7 TranslateX 0.5 8
Equalize 0.3 - AutoContrast 0.4 -
TranslateY 0.4 3 Sharpness 0.2 6
Brightness 0.9 6 Color 0.2 8
Solarize 0.5 2 Invert 0.0 -
Equalize 0.2 - AutoContrast 0.6 -
Equalize 0.2 - Equalize 0.6 -
Color 0.9 9 Equalize 0.6 -
AutoContrast 0.8 - Solarize 0.2 8
Brightness 0.1 3 Color 0.7 0
Solarize 0.4 5 AutoContrast 0.9 -
TranslateY 0.9 9 TranslateY 0.7 9
AutoContrast 0.9 - Solarize 0.8 3
Equalize 0.8 - Invert 0.1 -
TranslateY 0.7 9 AutoContrast 0.9 -
""")

SVHN = _sub_policies("""
ShearX 0.9 4 Invert 0.2 -
ShearY 0.9 8 Invert 0.7 -
Equalize 0.6 - Solarize 0.6 6
Invert 0.9 - Equalize 0.6 -
Equalize 0.6 - Rotate 0.9 3
ShearX 0.9 4 AutoContrast 0.8 -
ShearY 0.9 8 Invert 0.4 -
ShearY 0.9 5 Solarize 0.2 6
Invert 0.9 - AutoContrast 0.8 -
Equalize 0.6 - Rotate 0.9 3
ShearX 0.9 4 Solarize 0.3 3
ShearY 0.8 8 Invert 0.7 -
Equalize 0.9 - TranslateY 0.6 6
Invert 0.9 - Equalize 0.6 -
Contrast 0.3 3 Rotate 0.8 4
Invert 0.8 - TranslateY 0.0 2
ShearY 0.7 6 Solarize 0.4 8
Invert 0.6 - Rotate 0.8 4
ShearY 0.3 7 TranslateX 0.9 3
ShearX 0.1 6 Invert 0.6 -
Solarize 0.7 2 TranslateY 0.6 7
ShearY 0.8 4 Invert 0.8 -
ShearX 0.7 9 TranslateY 0.8 3
ShearY 0.8 5 AutoContrast 0.7 -
ShearX 0.7 2 Invert 0.1 -
""")

"""What is done to images between decoding and their place in a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from ._errors import OptionError, wrong_type

Size = Union[int, Tuple[int, int]]
Range = Tuple[float, float]

# Of ImageNet's training images, red, green, blue, for values of 0 to 1: those of torchvision's models.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_JITTER = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class Transform:
    """Steps for uint8 images of 1 to 4 channels, in this order; those that are not set are left out.

        decoded -> one of resize, random_resized_crop
                -> one of center_crop, random_crop
                -> flip -> rotation -> jitter -> blur -> cutout
                -> dtype, scale, normalize, layout

    They run in C, in the loader's workers or on the GPU. Random draws depend only on (seed, epoch, sample id): the same
    bytes with any number of workers, ranks, or after a resume. Sizes are 1..16384 pixels: a number, or (height, width).

    resize               (height, width): every image to this size. A number: the shorter side to that many pixels and
                         the longer one in proportion, as in torchvision; a crop must then follow.
    random_resized_crop  a random rectangle of the image, resized to this size. A number makes a square.
    area, ratio          its share of the image's area, default (0.08, 1), and its width / height, default (3/4, 4/3).
    center_crop          the center, the same pixels as torchvision's CenterCrop.
    random_crop          anywhere in the image and the `padding` pixels around it; padding is 0..16384, default 0.
    flip                 True: left to right with probability 1/2; another probability is not available.
    rotation             degrees: d draws from -d to d, (low, high) from low to high; -360..360. The size stays.
    jitter               strengths (brightness, contrast, saturation, hue), as a sequence of up to four or a mapping by
                         name; what is left out is 0. As torchvision's ColorJitter: hue is 0..0.5.
    blur, sigma          side of a Gaussian's kernel, odd, 3..63 pixels, and the range of its deviation, default (0.1, 2).
    cutout               side of a square that is painted over around a random pixel.
    fill                 value, or one per channel, of padding, cutout and what a rotation leaves empty: 0..255, default 0.
    normalize            (mean, std), one number or one per channel each: (value x scale - mean) / std. Needs a float dtype. With the
                         default scale, 1/255 of uint8 images, values are 0..1 before it, as after torchvision's ToTensor.
    fast_decode          decode large JPEG files at 1/2, 1/4 or 1/8 of their size if they are reduced at least as much;
                         pixels differ slightly.

    Raises OptionError (a ValueError) for steps that do not go together.
    """

    resize: Optional[Size] = None
    random_resized_crop: Optional[Size] = None
    center_crop: Optional[Size] = None
    random_crop: Optional[Size] = None
    padding: int = 0
    flip: bool = False
    rotation: Union[float, Range, None] = None
    jitter: Union[Sequence[float], Mapping[str, float], None] = None
    blur: int = 0
    sigma: Range = (0.1, 2.0)
    cutout: int = 0
    fill: Union[int, Sequence[int]] = 0
    normalize: Optional[Tuple[Any, Any]] = None
    area: Range = (0.08, 1.0)
    ratio: Range = (3.0 / 4.0, 4.0 / 3.0)
    fast_decode: bool = False

    def __post_init__(self) -> None:
        if self.resize is not None and self.random_resized_crop is not None:
            raise OptionError("resize and random_resized_crop are both set: the crop resizes, so leave resize out")
        if isinstance(self.resize, int) and self.center_crop is None and self.random_crop is None:
            raise OptionError(
                f"resize={self.resize} sets the shorter side, so images differ in size: add center_crop or random_crop, "
                f"or set both sides with resize=({self.resize}, {self.resize})"
            )
        if self.center_crop is not None and self.random_crop is not None:
            raise OptionError("center_crop and random_crop are both set: choose one")
        if self.padding and self.random_crop is None:
            raise OptionError("padding is for random_crop, which is not set")
        if type(self.flip).__name__ not in ("bool", "bool_"):  # or NumPy's
            wrong_type("flip", self.flip, "True or False, which flips with probability 1/2,")
        self.mean_and_std()
        self.steps()  # what cannot be read is an error here, not when a loader is made

    def steps(self) -> Dict[str, Any]:
        """The members of stoker_transform that are not left at their defaults."""
        steps: Dict[str, Any] = {}
        if isinstance(self.resize, int):
            steps["resize_shorter"] = self.resize
        elif self.resize is not None:
            steps["resize"] = _size("resize", self.resize)
        for name, value in (
            ("random_resized_crop", self.random_resized_crop),
            ("center_crop", self.center_crop),
            ("random_crop", self.random_crop),
        ):
            if value is not None:
                steps[name] = _size(name, value)
        steps["area_min"], steps["area_max"] = _range("area", self.area)
        steps["ratio_min"], steps["ratio_max"] = _range("ratio", self.ratio)
        steps["sigma_min"], steps["sigma_max"] = _range("sigma", self.sigma)
        steps.update(pad=self.padding, flip=bool(self.flip), blur=self.blur, cutout=self.cutout)
        steps["fill"] = _fill(self.fill)
        steps["decode_scale"] = "fast" if self.fast_decode else "exact"
        if self.rotation is not None:
            steps["rotate_min"], steps["rotate_max"] = _rotation(self.rotation)
        steps.update(_jitter(self.jitter))
        return steps

    def mean_and_std(self) -> Optional[Tuple[Tuple[float, ...], Tuple[float, ...]]]:
        """(mean, std), equally many numbers each; None if nothing is normalized."""
        if self.normalize is None:
            return None
        if len(self.normalize) != 2:
            raise OptionError("normalize takes two things: (mean, std)")
        mean, std = (_numbers(f"normalize: {name}", part) for name, part in zip(("mean", "std"), self.normalize))
        count = max(len(mean), len(std))
        if {len(mean), len(std)} - {1, count}:
            raise OptionError(f"normalize has {len(mean)} means and {len(std)} deviations: give one per channel of each")
        return mean * (count // len(mean)), std * (count // len(std))


def _size(name: str, value: Size) -> Tuple[int, int]:
    if isinstance(value, int):
        return value, value
    pair = tuple(value)
    if len(pair) != 2 or not all(isinstance(side, int) for side in pair):
        raise OptionError(f"{name} is {value!r}: a number of pixels or (height, width) is expected")
    return pair[0], pair[1]


def _range(name: str, value: Any) -> Range:
    try:
        low, high = (float(part) for part in value)
    except (TypeError, ValueError):
        raise OptionError(f"{name} is {value!r}: a pair (low, high) is expected") from None
    return low, high


def _numbers(name: str, value: Any) -> Tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in value) if hasattr(value, "__len__") else (float(value),)
    except (TypeError, ValueError):
        raise OptionError(f"{name} is {value!r}: a number, or one per channel, is expected") from None
    if not numbers:
        raise OptionError(f"{name} is empty: a number, or one per channel, is expected")
    return numbers


def _fill(value: Union[int, Sequence[int]]) -> Tuple[int, ...]:
    levels = (value,) * 4 if isinstance(value, int) else tuple(value)
    if not 1 <= len(levels) <= 4 or not all(isinstance(level, int) and 0 <= level <= 255 for level in levels):
        raise OptionError(f"fill is {value!r}: a level of 0..255, or up to four, is expected")
    return levels + (0,) * (4 - len(levels))


def _rotation(value: Union[float, Range]) -> Range:
    if isinstance(value, (int, float)):
        return -abs(float(value)), abs(float(value))
    return _range("rotation", value)


def _jitter(value: Union[Sequence[float], Mapping[str, float], None]) -> Dict[str, float]:
    if value is None:
        return {}
    named = dict(value) if isinstance(value, Mapping) else dict(zip(_JITTER, value))
    unknown = set(named) - set(_JITTER)
    if unknown or len(named) < len(value):
        raise OptionError(f"jitter is {value!r}: strengths of {', '.join(_JITTER)} are expected, in this order or by name")
    return {name: float(strength) for name, strength in named.items()}

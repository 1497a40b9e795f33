"""Transform: its steps in the C library, and what it refuses."""

import pytest

import stoker
from stoker import Transform


@pytest.mark.parametrize("wrong, word", [
    (dict(resize=256), "center_crop"), (dict(resize=(8, 8), random_resized_crop=8), "leave resize out"),
    (dict(center_crop=8, random_crop=8), "choose one"), (dict(padding=4), "random_crop"),
    (dict(random_resized_crop=(1, 2, 3)), "height, width"), (dict(area=0.5), "pair"), (dict(fill=256), "0..255"),
    (dict(fill=(1, 2, 3, 4, 5)), "up to four"), (dict(jitter=(1, 2, 3, 4, 5)), "brightness"),
    (dict(jitter={"color": 1}), "brightness"), (dict(normalize=((1, 2), (1, 2, 3))), "2 means"),
    (dict(normalize=("a", "b")), "number"), (dict(normalize=((), ())), "empty"), (dict(rotation="a lot"), "pair"),
])  # fmt: skip
def test_steps_that_do_not_go_together_are_refused(wrong, word):
    with pytest.raises(stoker.OptionError, match=word):
        Transform(**wrong)


def test_each_step_becomes_a_member_of_the_struct():
    steps = Transform(
        resize=20, random_crop=(8, 9), padding=2, flip=True, rotation=15, jitter={"hue": 0.1, "contrast": 0.2}, blur=3,
        sigma=(0.5, 1), cutout=4, fill=(1, 2), area=(0.1, 0.9), ratio=(0.5, 2), fast_decode=True,
    ).steps()  # fmt: skip
    assert steps == dict(
        resize_shorter=20, random_crop=(8, 9), pad=2, flip=True, rotate_min=-15, rotate_max=15, hue=0.1, contrast=0.2, blur=3,
        sigma_min=0.5, sigma_max=1, cutout=4, fill=(1, 2, 0, 0), area_min=0.1, area_max=0.9, ratio_min=0.5, ratio_max=2,
        decode_scale="fast",
    )  # fmt: skip


def test_one_number_normalizes_all_channels():
    assert Transform(normalize=(0.5, (1, 2, 3))).mean_and_std() == ((0.5, 0.5, 0.5), (1, 2, 3))


def test_images_of_a_folder_are_resized_and_normalized(pictures, loader):
    batches = list(loader(str(pictures), transform=Transform(resize=(4, 6), normalize=(0.5, 0.25)), layout="NCHW"))
    images = batches[0].images
    assert images.shape == (10, 1, 4, 6) and images.dtype == "float32"
    assert images[3] == pytest.approx((30 / 255 - 0.5) / 0.25, abs=1e-5)


def test_a_center_crop_after_the_shorter_side_as_in_torchvision(pictures, loader):
    images = next(iter(loader(str(pictures), transform=Transform(resize=16, center_crop=(10, 12))))).images
    assert images.shape == (10, 10, 12, 1) and images.dtype == "uint8" and (images[2] == 20).all()


def test_random_steps_repeat_with_the_seed(pictures, loader):
    spec, transform = "synth:pictures?count=20&size=32", Transform(random_resized_crop=8, flip=True, jitter=(0.4, 0.4, 0.4, 0.1))
    runs = [next(iter(loader(spec, transform=transform, seed=seed, num_workers=workers))).images
            for seed, workers in ((1, 1), (1, 2), (2, 1))]  # fmt: skip
    assert (runs[0] == runs[1]).all() and not (runs[0] == runs[2]).all()


def test_a_function_as_transform_is_refused_with_the_way_to_do_it(loader):
    with pytest.raises(stoker.OptionError, match="batch_transform"):
        loader(transform=lambda image: image)


@pytest.mark.parametrize("size", range(20, 33))
def test_a_center_crop_has_the_pixels_of_torchvision(size):
    transforms = pytest.importorskip("torchvision.transforms", reason="torchvision is not installed")
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    image = numpy.arange(size * 33, dtype=numpy.uint16).astype(numpy.uint8).reshape(1, size, 33, 1)
    ours = next(iter(stoker.DataLoader(stoker.from_arrays(image), transform=Transform(center_crop=(19, 20)))))[0]
    theirs = transforms.CenterCrop((19, 20))(torch.from_numpy(image[0, :, :, 0]))
    assert torch.equal(ours[0, :, :, 0], theirs)

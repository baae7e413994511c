"""Pictures of each view, compared with those of the documents. RONDEL_PICTURES=write writes them."""

import io
import os

import pytest
import scenes
from conftest import ROOT, settle
from PIL import Image, ImageChops, ImageFilter
from play import Play

FOLDER = ROOT / "docs/images"
AT = 1_795_939_200 + 504  # 2026-11-29 08:08:24 UTC; the fleet then has an interesting last half hour
SIZE = 150_000  # bytes

# Fonts and their smoothing differ between machines: texts count little after blurring, places and colours of areas remain.
BLUR = 4
DIFFERENT = 40  # of 255, in one channel
TOLERATED = 0.03  # of the pixels

PICTURES = {
    "page-overview": ("#/overview", {}),
    "page-overview-dark": ("#/overview", {"color_scheme": "dark"}),
    "page-property": ("#/property/speed_limit", {"viewport": {"width": 1280, "height": 860}}),
    "page-instances": ("#/property/keep_distance", {"viewport": {"width": 1280, "height": 1250}}),
    "page-topics": ("#/topics/scan", {"viewport": {"width": 1280, "height": 640}}),
    "page-incidents": ("#/incidents", {"viewport": {"width": 1280, "height": 620}}),
    "page-losses": ("#/losses?range=1800", {"viewport": {"width": 1280, "height": 420}}),
    "page-specification": ("#/specification?line=23", {"viewport": {"width": 1280, "height": 720}}),
    "page-playground": ("#/playground?on=example+Limits", {"viewport": {"width": 1280, "height": 720}}),
    "page-lost": ("#/overview", {"viewport": {"width": 1280, "height": 520}}),
    "page-narrow": ("#/overview", {"viewport": {"width": 360, "height": 640}}),
}


def picture(open_page, fake, name):
    address, options = PICTURES[name]
    page = open_page(fake.url + address, setup=lambda page: page.add_init_script("performance.now = () => 0; Date.now = () => 0"), expect_errors=name == "page-lost", timezone_id="UTC", **options)
    settle(page, 2500)
    if name == "page-property":
        page.locator(".violation").first.click()
        page.wait_for_timeout(2500)
    if name == "page-playground":
        page.locator(".judged .violations button").click()
        page.wait_for_timeout(1000)
    if name == "page-lost":
        fake.stop()
        page.locator("#banner").wait_for()
        page.wait_for_timeout(1500)
    page.mouse.move(0, 0)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    if name == "page-lost":
        fake.start()
    return image


def share_of_difference(one, other):
    blurred = [image.filter(ImageFilter.GaussianBlur(BLUR)) for image in (one, other)]
    difference = ImageChops.difference(*blurred)
    worst = ImageChops.lighter(ImageChops.lighter(*difference.split()[:2]), difference.split()[2])
    return sum(worst.histogram()[DIFFERENT:]) / (one.width * one.height)


@pytest.mark.parametrize("name", PICTURES)
def test_view_looks_as_in_the_documents(open_page, serve, name):
    playground = Play(file="vehicle.rondel") if name == "page-playground" else None
    image = picture(open_page, serve(scenes.fleet, at=AT, may_act=True, playground=playground), name)
    file = FOLDER / f"{name}.png"
    if os.environ.get("RONDEL_PICTURES") == "write":
        image.quantize(200, dither=Image.Dither.NONE).save(file, optimize=True)
    assert file.stat().st_size < SIZE
    known = Image.open(file).convert("RGB")
    assert known.size == image.size
    share = share_of_difference(known, image)
    print(f"{name}: {share:.2%} different")
    assert share < TOLERATED


def test_comparison_notices_a_lost_timeline(open_page, serve):
    known = Image.open(FOLDER / "page-overview.png").convert("RGB")
    other = known.copy()
    other.paste((255, 255, 255), (830, 186, 1250, 700))
    assert share_of_difference(known, other) > TOLERATED

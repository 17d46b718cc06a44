"""WebGL resources are freed after use; a browser without WebGL gets a message."""

from dataclasses import replace

import pytest
from tabs import outcome, rename

import marey
from marey.io.formats import html

COUNTED = """(() => {
  const kinds = ["Buffer", "VertexArray", "Texture", "Program", "Shader"];
  const gl = WebGL2RenderingContext.prototype;
  window.live = Object.fromEntries(kinds.map((kind) => [kind, 0]));
  for (const kind of kinds) {
    const [make, end] = [gl[`create${kind}`], gl[`delete${kind}`]];
    gl[`create${kind}`] = function (...of) {
      window.live[kind]++;
      return make.apply(this, of);
    };
    gl[`delete${kind}`] = function (thing) {
      if (thing) window.live[kind]--;
      return end.call(this, thing);
    };
  }
})()"""


@pytest.fixture(scope="module")
def double(walked, walk, tmp_path_factory):
    """Two takes with their truth, as a page."""
    subject = walked.subjects[0]
    twice = replace(
        walked,
        takes=walked.takes * 2,
        bodies=walked.bodies * 2,
        subjects=(replace(subject, motions=subject.motions * 2),),
    )
    scene = html.encode_scene(twice, html.SceneOptions(truth=walk.truth.motions * 2))
    path = tmp_path_factory.mktemp("page") / "double.html"
    path.write_bytes(html.read_page().with_scene(scene, "double"))
    return path


def live(tab):
    tab.ask("marey.draw()")
    return tab.ask("window.live")


def test_what_was_drawn_with_is_given_back(open_tab, double):
    """Takes, themes and trails come and go; the graphics card holds one set of each."""
    tab = open_tab(double.as_uri(), script=COUNTED)
    tab.page.keyboard.press("r")
    tab.select("LeftFoot")
    held = []
    for number in range(4):
        tab.page.locator("select.takes").select_option(str((number + 1) % 2))
        tab.until(f"marey.snapshot().take === {(number + 1) % 2}")
        live(tab)
        for key in ("d", "d", "r", "r", "r"):
            tab.page.keyboard.press(key)
            tab.wait_for_frame()
        held.append(live(tab))
    assert held[0]["Buffer"] > 20
    assert held[1:] == held[:1] * 3


def test_an_edit_that_is_tried_and_dropped_leaves_nothing_behind(open_tab, walked):
    with marey.view(walked, browser=False, block=False) as viewer:
        tab = open_tab(viewer.url, script=COUNTED)
        tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
        held = []
        for _ in range(2):
            rename(tab, "LeftFoot", "Boot")
            assert outcome(tab) == ""
            live(tab)
            tab.page.get_by_role("button", name="Drop").click()
            tab.until("marey.select('LeftFoot')")
            held.append(live(tab))
        assert held[0] == held[1]


@pytest.fixture(scope="module")
def blocked(open_tab, double):
    return open_tab(double.as_uri(), draws=False)


def test_a_browser_that_cannot_draw_says_so_in_the_place_of_the_scene(blocked):
    note = blocked.text(".stage")
    assert "cannot draw in 3-D (WebGL 2)" in note
    assert "graphics acceleration" in note
    box, stage = (
        blocked.page.locator(part).bounding_box() for part in (".undrawn", ".stage")
    )
    assert box["width"] <= stage["width"]
    assert box["height"] <= stage["height"]
    assert blocked.page.locator(".stage canvas").count() == 0
    assert blocked.error_messages == []


def test_a_browser_that_cannot_draw_shows_all_else(blocked, walked):
    tab, names = blocked, walked.skeleton.names
    tab.until_texts(".row.joint .text", sorted_as_tree(walked.skeleton))
    lengths = tab.page.locator("section", has_text="Bone lengths").locator("tr")
    assert lengths.count() == len(names) - 1
    causes = len(walked.report.causes)
    assert tab.page.locator(".finding").count() == causes
    assert "residual" in tab.text(".score")
    tab.page.locator(".row.joint", has_text="RightLowerLeg").first.click()
    assert tab.snapshot["selected"] == "RightLowerLeg"
    assert float(tab.fact("Gap rms")) > 0.0
    tab.page.locator(".takes").select_option(index=1)
    tab.until("marey.snapshot().take === 1")
    tab.page.keyboard.press("d")
    tab.page.keyboard.press("Space")
    tab.until("marey.frame > 5")
    tab.page.keyboard.press("Space")
    assert tab.error_messages == []


def test_programs_find_the_page_there_too(blocked):
    assert blocked.ask("marey.where('LeftLowerLeg')") is None
    assert blocked.ask("marey.draw()") == 0
    assert blocked.snapshot["draws"] is False
    assert blocked.snapshot["camera"] is None


def sorted_as_tree(skeleton):
    """The names of joints as the tree lists them: each before what hangs from it."""

    def below(joint):
        children = [i for i, p in enumerate(skeleton.parent.tolist()) if p == joint]
        hung = [name for child in children for name in below(child)]
        return [skeleton.names[joint], *hung]

    return below(0)

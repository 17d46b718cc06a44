"""Optical recordings with known bodies, and the agreement of bodies that were found.

A marker on a joint line may belong to either neighbour: it lists every body that may
own it; the first one is the strict one. Bodies without markers are contracted away.
"""

import json
import re
from dataclasses import dataclass
from itertools import product

import numpy as np
from naive import adjusted_rand
from scipy.optimize import linear_sum_assignment

import marey

MIN_SEEN_FRACTION = 0.3
"""Fraction of the frames that must show a marker."""


@dataclass(frozen=True)
class MarkerSet:
    """Takes of the same markers, with the bodies each marker may belong to."""

    takes: tuple
    allowed: tuple
    edges: frozenset

    @property
    def strict(self):
        return [bodies[0] for bodies in self.allowed]


# --- maps -----------------------------------------------------------------------------

HUMAN_EDGES = {
    ("head", "torso"),
    ("torso", "pelvis"),
    *((f"uarm{s}", "torso") for s in "LR"),
    *((f"farm{s}", f"uarm{s}") for s in "LR"),
    *((f"hand{s}", f"farm{s}") for s in "LR"),
    *((f"thigh{s}", "pelvis") for s in "LR"),
    *((f"shank{s}", f"thigh{s}") for s in "LR"),
    *((f"foot{s}", f"shank{s}") for s in "LR"),
}

# {} is the side.
PLUG_IN_GAIT = {
    "head": "LFHD RFHD LBHD RBHD",
    "torso": "C7 T10 CLAV STRN",
    "pelvis": "LFWT RFWT LBWT RBWT MFWT LASI RASI LPSI RPSI SACR",
    "torso clavR": "RBAC RBAK",
    "torso uarm{} clav{}": "{}SHO",
    "uarm{}": "{}UPA",
    "uarm{} farm{}": "{}ELB",
    "farm{}": "{}FRM {}FRA",
    "farm{} hand{}": "{}WRA {}WRB",
    "hand{}": "{}FIN {}THM",
    "thigh{}": "{}THI",
    "thigh{} shank{}": "{}KNE",
    "shank{}": "{}SHN {}TIB {}SHI",
    "shank{} foot{}": "{}ANK",
    "foot{}": "{}HEE {}MT5",
    "foot{} toe{}": "{}TOE",
}

QUALISYS = {
    "head": "HV OCC LTEMP RTEMP SEL",
    "torso": "C7 T10 SUP STR",
    "pelvis": "LPSIS RPSIS LASIS RASIS",
    "torso uarm{}": "{}A",
    "uarm{}": "{}ARM1 {}ARM2 {}ARM3 {}AMR1",
    "uarm{} farm{}": "{}LHE {}MHE",
    "farm{}": "{}FARM1 {}FARM2 {}FARM3",
    "farm{} hand{}": "{}US {}RS",
    "hand{}": "{}HMH5 {}HMH2 {}FT3",
    "thigh{} pelvis": "{}GT",
    "thigh{}": "{}THI1 {}THI2 {}THI3",
    "thigh{} shank{}": "{}LFE {}MFE",
    "shank{}": "{}LEG1 {}LEG2 {}LEG3",
    "shank{} foot{}": "{}LM {}SPH",
    "foot{}": "{}CAL {}MFH5 {}MFH1 {}TT2",
}

RACING = {
    "probe": "Probe1 Probe2 Probe3 Probe4 Probe5 Probe6",
    "chair": "WheelchairRearR WheelchairRearL WheelchairFront",
    "torso": "Sternum",
    "head": "Head1 Head2 Head3",
    "scapula{}": "Scapula{}1 Scapula{}2 Scapula{}3",
    "arm{}": "Arm{}1 Arm{}2 Arm{}3",
    "arm{} farm{}": "LateralEpicondyle{}",
    "farm{}": "Forearm{}1 Forearm{}2 Forearm{}3",
    "hand{}": "Glove{}1 Glove{}2 Glove{}3",
    "handR farmR": "NAR",
    "handL farmL": "NAG",
}
RACING_EDGES = {
    ("head", "torso"),
    *(("torso", f"scapula{s}") for s in "LR"),
    *((f"scapula{s}", f"arm{s}") for s in "LR"),
    *((f"arm{s}", f"farm{s}") for s in "LR"),
    *((f"farm{s}", f"hand{s}") for s in "LR"),
}

SCAPULA = {
    "thorax": "C7 T10 MAN XYP",
    "clavicle thorax": "CLAV_SC",
    "clavicle scapula": "CLAV_AC",
    "scapula clavicle": "SCAP_AC",
    "scapula": "SCAP_BACK SCAP_IA SCAP_AA SCAP_FRONT SCAP_Cor",
    "arm": "ARM DELT",
    "arm farm": "EPI_med EPI_lat",
    "farm hand": "ULNA RADIUS",
    "hand farm": "SEML",
    "hand": "MET5 MET2",
}
SCAPULA_EDGES = {
    ("thorax", "clavicle"),
    ("clavicle", "scapula"),
    ("scapula", "arm"),
    ("arm", "farm"),
    ("farm", "hand"),
}

HOCKEY = PLUG_IN_GAIT | {"stick": "1 2 3 4 5 6 7 8 9 10", "puck": "Puck1 Puck2"}

FINGERS = ("thumb", "little", "ring", "middle", "index")
GLOVE_EDGES = {("elbow", "back"), ("hand", "elbow"), *(("hand", f) for f in FINGERS)}

PENDULUM_EDGES = {("Static", "Upper"), ("Upper", "Middle"), ("Middle", "Lower")}


def by_marker(table):
    """Bodies of each marker from a table of markers by bodies, both sides filled in."""
    found = {}
    for (bodies, markers), side in product(table.items(), "LR"):
        for marker in markers.format(*side * 9).split():
            found[marker] = tuple(bodies.format(*side * 9).split())
    return found


# --- sets -----------------------------------------------------------------------------


def marker_set(takes, bodies_of, edges):
    """Takes cut down to the markers that all have, see often enough, and know."""
    wanted = [_usable(take, bodies_of) for take in takes]
    common = [label for label in wanted[0] if all(label in one for one in wanted)]
    allowed = tuple(bodies_of[label] for label in common)
    cut = tuple(
        take.select([one[label] for label in common])
        for take, one in zip(takes, wanted, strict=True)
    )
    return MarkerSet(cut, allowed, contract_edges(edges, {a[0] for a in allowed}))


def _usable(take, bodies_of):
    """Index of each known marker that is seen often enough; the first of equal ones."""
    share = take.seen.mean(axis=0)
    found = {}
    for i, label in enumerate(take.labels):
        if label in bodies_of and share[i] > MIN_SEEN_FRACTION:
            found.setdefault(label, i)
    return found


def contract_edges(edges, present):
    """The edges between present bodies after the others are contracted."""
    edges = {frozenset(edge) for edge in edges}
    for gone in sorted({body for edge in edges for body in edge} - present):
        neighbours = sorted(
            {b for edge in edges if gone in edge for b in edge} - {gone}
        )
        edges = {edge for edge in edges if gone not in edge}
        edges |= {frozenset((neighbours[0], other)) for other in neighbours[1:]}
    return frozenset(edges)


def _human(*paths):
    takes = [marey.read(path) for path in paths]
    return marker_set(takes, by_marker(PLUG_IN_GAIT), HUMAN_EDGES)


def _opensim(folder, *files):
    """Markers on the bodies of a model; welded and short links count as one body."""
    model = json.loads((folder / "model_topology.json").read_text())
    welded = {
        joint["child"]: joint["parent"]
        for joint in model["joints"]
        if joint["child"].startswith(("radius", "calcn", "toes"))
    }

    def solid(body):
        return solid(welded[body]) if body in welded else body

    edges = {
        (solid(joint["parent"]), solid(joint["child"]))
        for joint in model["joints"]
        if joint["parent"] != "ground" and joint["child"] not in welded
    }
    bodies_of = {
        label: _either(label, solid(body))
        for label, body in model["marker_to_body"].items()
        if "HJC" not in label and not label.endswith("JC")
    }
    for side in "RL":
        for part, body in (("humerus", "humerus"), ("forearm", "ulna")):
            bodies_of.setdefault(f"{side}_{part}", (f"{body}_{side.lower()}",))
    takes = [marey.read(folder / file) for file in files]
    return marker_set(takes, bodies_of, edges)


def _either(label, body):
    """Both neighbours of a marker on a joint line."""
    side, low = body[-2:], label.lower()
    if "knee" in low or label[1:] in ("LFC", "MFC"):
        return (f"femur{side}", f"tibia{side}")
    if "elbow" in low or label[1:] in ("LEL", "MEL"):
        return (f"humerus{side}", f"ulna{side}")
    if "ankle" in low or label[1:] in ("LMAL", "MMAL"):
        return (f"tibia{side}", f"talus{side}")
    if label[1:] in ("ACR", "ASH", "PSH", "_Shoulder"):
        return ("torso", f"humerus_{label[0].lower()}")
    return (body,)


def _vsk(folder):
    text = (folder / "Nick01.vsk").read_text(errors="replace")
    edges, ancestors = set(), []
    for tag in re.finditer(r'<Segment NAME="([^"]+)"|</Segment>', text):
        if tag[1] is None:
            ancestors.pop()
            continue
        if ancestors:
            edges.add((ancestors[-1], tag[1]))
        ancestors.append(tag[1])
    pattern = r'<Marker NAME="([^"]+)" SEGMENT="([^"]+)"'
    bodies_of = {m: _vsk_bodies(m, s) for m, s in re.findall(pattern, text)}
    take = marey.read(folder / "nick_freeform_001.c3d")
    return marker_set([take], bodies_of, edges)


def _vsk_bodies(marker, segment):
    side, kind = "Left" if marker[0] == "L" else "Right", marker[1:]
    other = {
        **dict.fromkeys(("ELB", "IEL"), "ForeArm"),
        **dict.fromkeys(("KNE", "KNI"), "Leg"),
        **dict.fromkeys(("OWR", "IWR"), "Hand"),
        **dict.fromkeys(("MT1", "MT5"), "Toe"),
        "ANK": "Foot",
        "TOE": "Foot",
    }
    if kind in ("FSH", "BSH"):
        return (segment, "Spine1", f"{side}Arm")
    return (segment, side + other[kind]) if kind in other else (segment,)


def _pendulum(path):
    take = marey.read(path)
    bodies_of = {label: (re.sub(r"[OXY\d]+$", "", label),) for label in take.labels}
    return marker_set([take], bodies_of, PENDULUM_EDGES)


def _two_players(path):
    take = marey.read(path)
    known = by_marker(PLUG_IN_GAIT)
    named = zip(take.subjects, take.labels, strict=True)
    players = sorted({player for player, label in named if player and label in known})
    full = marey.Take(rate=take.rate, points=take.points, labels=take.full_labels)
    bodies_of = {
        f"{player}:{label}": tuple(f"{player}.{body}" for body in bodies)
        for player in players
        for label, bodies in known.items()
    }
    edges = {(f"{p}.{a}", f"{p}.{b}") for p in players for a, b in HUMAN_EDGES}
    return marker_set([full], bodies_of, edges)


def _glove(path):
    take = marey.read(path)
    bodies_of = {label: (label.split("_")[0],) for label in take.labels}
    bodies_of |= {"right_elbow": ("elbow",), "right_shoulder": ("back",)}
    return marker_set([take], bodies_of, GLOVE_EDGES)


def _mapped(path, table, edges):
    return marker_set([marey.read(path)], by_marker(table), edges)


SETS = {
    "cmu 01_01": lambda d: _human(d / "cmu/01_01.c3d"),
    "cmu 02_01": lambda d: _human(d / "cmu/02_01.c3d"),
    "cmu 02_05": lambda d: _human(d / "cmu/02_05.c3d"),
    "cmu 07_01": lambda d: _human(d / "cmu/07_01.c3d"),
    "cmu 07_12": lambda d: _human(d / "cmu/07_12.c3d"),
    "cmu 16_07": lambda d: _human(d / "cmu/16_07.c3d"),
    "cmu 02 pooled": lambda d: _human(d / "cmu/02_01.c3d", d / "cmu/02_05.c3d"),
    "cmu 07 pooled": lambda d: _human(d / "cmu/07_01.c3d", d / "cmu/07_12.c3d"),
    "hdm05 dg": lambda d: _human(d / "hdm05/HDM_dg_06-03_03_120.c3d"),
    "plug-in gait": lambda d: _human(d / "btk_plugingait/PiG_Motion-FlatFoot-Full.c3d"),
    "gatech": lambda d: _vsk(d / "gatech_vsk"),
    "opencap squat": lambda d: _opensim(d / "addbio_uhlrich_s2", "squats1.trc"),
    "opencap walk": lambda d: _opensim(d / "addbio_uhlrich_s2", "walking1.trc"),
    "opencap jump": lambda d: _opensim(d / "addbio_uhlrich_s2", "DJ1.trc"),
    "opencap pooled": lambda d: _opensim(
        d / "addbio_uhlrich_s2", "squats1.trc", "walking1.trc", "DJ1.trc"
    ),
    "hamner run": lambda d: _opensim(d / "addbio_hamner_s01", "run500.trc"),
    "arnold walk": lambda d: _opensim(d / "addbio_arnold_s01_synthetic", "walk2.trc"),
    "pendulum 01": lambda d: _pendulum(d / "mech_pendulum/pendulum_01.trc"),
    "pendulum 03": lambda d: _pendulum(d / "mech_pendulum/pendulum_03.trc"),
    "biobuddy": lambda d: marker_set(
        [marey.read(d / f"biobuddy_functional/right_{j}.c3d") for j in ("hip", "knee")],
        by_marker(QUALISYS),
        HUMAN_EDGES,
    ),
    "tennis": lambda d: _two_players(d / "ktk/kinematics_tennis_serve_2players.c3d"),
    "racing": lambda d: _mapped(
        d / "ktk/kinematics_racing_propulsion.c3d", RACING, RACING_EDGES
    ),
    "hockey": lambda d: _mapped(
        d / "props_hockey/wrist_shot_009.c3d",
        HOCKEY,
        HUMAN_EDGES | {("stick", "handR")},
    ),
    "scapula": lambda d: _mapped(
        d / "upperlimb_scapula/example.c3d", SCAPULA, SCAPULA_EDGES
    ),
    "glove": lambda d: _glove(d / "hand_dfki/recording.tsv"),
}


# --- scores ---------------------------------------------------------------------------


def tolerant_score(known, found):
    """The adjusted Rand index of the best allowed labelling, and that labelling."""
    best = (adjusted_rand(known.strict, found), list(known.strict))
    for start in (known.strict, _likeliest(known, found)):
        labels = list(start)
        score = adjusted_rand(labels, found)
        for _ in range(5):
            before = score
            for i, bodies in enumerate(known.allowed):
                for body in bodies:
                    tried = [*labels[:i], body, *labels[i + 1 :]]
                    if (value := adjusted_rand(tried, found)) > score + 1e-12:
                        labels, score = tried, value
            if score == before:
                break
        best = max(best, (score, labels), key=lambda pair: pair[0])
    return best


def _likeliest(known, found):
    """Of each marker's bodies the one of most unambiguous markers in its cluster."""
    sure = [bodies[0] if len(bodies) == 1 else None for bodies in known.allowed]
    clusters = [np.flatnonzero(np.asarray(found) == f) for f in found]
    return [
        max(bodies, key=[sure[j] for j in cluster].count)
        for bodies, cluster in zip(known.allowed, clusters, strict=True)
    ]


def match_bodies(found, labels):
    """The true body of each found one, one to one, with most markers in common."""
    names = sorted(set(labels))
    bodies = sorted(set(found))
    count = np.zeros((len(bodies), len(names)))
    for f, name in zip(found, labels, strict=True):
        count[bodies.index(f), names.index(name)] += 1
    rows, columns = linear_sum_assignment(-count)
    return {
        bodies[r]: names[c] for r, c in zip(rows, columns, strict=True) if count[r, c]
    }

# SPDX-License-Identifier: Apache-2.0
"""The scenarios, exactly: what load, which backends, what happens when. DESIGN-like names; times in seconds since the load
began; every connection is a channel of its own with a TCP connection of its own; latency counts from the scheduled time."""

from dataclasses import dataclass, field

DEADLINE_S = 5


@dataclass(frozen=True)
class Backend:
    workers: int
    service_ms: int


@dataclass(frozen=True)
class Action:
    at: float
    verb: str          # "add", "drain", "term", "kill", "cut"
    backends: tuple    # indices, from 1


@dataclass(frozen=True)
class Scenario:
    backends: tuple                 # of Backend; those of an "add" are there, but not yet known to the balancer
    load: tuple                     # options of unpin-gen grpc
    seconds: float
    quick_seconds: float
    actions: tuple = ()
    policy: dict = field(default_factory=dict)  # of the service, as in unpind's file
    shuffles: bool = False          # the seed shuffles which connection gets which rate
    optimum: float = 1.0            # of whole connections; S1 computes its own
    kind: str = "even"              # how it is scored: even, scale, slow, drain, loss

    def at_first(self):
        added = {i for action in self.actions if action.verb == "add" for i in action.backends}
        return [i for i in range(1, len(self.backends) + 1) if i not in added]


WHALES, WHALE_RPS = 8, 800
TEN = Backend(4, 10)
FIVE = Backend(4, 5)
TWENTY = Backend(16, 20)
HEALTH = {"health": {"kind": "tcp", "interval": "250ms", "timeout": "200ms"}}
EQUAL = ("--connections", 12, "--rps", 600)


def _loss(verb, actions, retry, seconds, quick):
    return Scenario(backends=(TWENTY,) * 3, load=EQUAL + (("--retry",) if retry else ()), seconds=seconds, quick_seconds=quick,
                    actions=actions, policy=HEALTH, kind=verb)


def _slow(lazy):
    return Scenario(backends=(Backend(1, 20), Backend(1, 20), Backend(1, 200)),
                    load=("--connections", 9, "--rps", 1000 / 12, "--arrivals", "uniform", "--requests", 300) +
                    (("--lazy",) if lazy else ("--settle", "2s")),
                    seconds=8, quick_seconds=8, kind="slow",
                    policy={"rebalance": {"enabled": True, "signal": "inflight"}, "outlier": {"latency_factor": 5}})


DRAIN = Action(3, "drain", (1,))
SCENARIOS = {
    "S1": Scenario(backends=(TEN,) * 3, load=("--connections", WHALES, "--rates", "zipf:1", "--rps", WHALE_RPS), seconds=15,
                   quick_seconds=10, shuffles=True),
    "S2": Scenario(backends=(FIVE,) * 4, load=("--connections", 16, "--rps", 600), seconds=18, quick_seconds=12,
                   actions=(Action(5, "add", (3, 4)),), kind="scale"),
    "S3-early": _slow(lazy=False),
    "S3-lazy": _slow(lazy=True),
    "S4-term": _loss("drain", (DRAIN, Action(6, "term", (1,))), False, 9, 8),
    "S4-kill": _loss("drain", (DRAIN, Action(6, "kill", (1,))), False, 9, 8),
    "S4-term-retry": _loss("drain", (DRAIN, Action(6, "term", (1,))), True, 9, 8),
    "S5": _loss("loss", (Action(3, "kill", (1,)),), False, 9, 7),
    "S5-retry": _loss("loss", (Action(3, "kill", (1,)),), True, 9, 7),
    "S5b": _loss("loss", (Action(3, "cut", (1,)),), False, 30, 12),
    "S5b-retry": _loss("loss", (Action(3, "cut", (1,)),), True, 30, 12),
}


def whale_rates():
    weights = [1 / i for i in range(1, WHALES + 1)]
    return [WHALE_RPS * weight / sum(weights) for weight in weights]

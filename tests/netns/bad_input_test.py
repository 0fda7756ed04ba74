#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong commands and wrong configurations: a clear error that names what is wrong, and nothing half-applied."""

import copy
import os
import unittest

# First: it says where the others are.
from scene import PORT, VIP, Testbed, UnpinRefused, prefix
from process import Process


class CommandsTest(unittest.TestCase):
    """Against a running unpind. (words, exit status, what stderr must say)"""

    REFUSED = (
        ("add service other 10.9.0.2:0", (1, 2), "port"),
        ("add service other 10.9.0.2:70000", (1, 2), "port"),
        (f"add service other {VIP}:{PORT}", (1,), f"{VIP}:{PORT}|already"),
        ("add service interop 10.9.0.2:50052", (1,), "interop.*(exists|already)|(exists|already).*interop"),
        ("add service No_Such_Name! 10.9.0.2:50052", (1, 2), "name"),
        ("add service other 10.1.1.2:50051", (1,), "10.1.1.2.*backend|backend.*10.1.1.2"),
        ("add backend interop 10.1.1.2:0", (1, 2), "port"),
        ("add backend interop 10.1.1.2:50051", (1,), r"10\.1\.1\.2:50051"),
        ("add backend interop 300.1.1.2:50051", (1, 2), r"300\.1\.1\.2"),
        ("add backend nosuch 10.1.2.2:50051", (1,), "nosuch"),
        ("add backend interop 10.1.2.2:50051 --weight -1", (1, 2), "weight"),
        ("add backend interop 10.1.2.2:50051 --weight 65536", (1, 2), "weight"),
        (f"add backend interop {VIP}:{PORT}", (1,), r"10\.9\.0\.1"),
        ("set backend interop 10.1.1.2:50051 --weight -1", (1, 2), "weight"),
        ("set backend interop 10.1.3.2:50051 --weight 5", (1,), r"10\.1\.3\.2:50051"),
        ("remove backend interop 10.1.3.2:50051", (1,), r"10\.1\.3\.2:50051"),
        ("remove service nosuch", (1,), "nosuch"),
        ("drain nosuch 10.1.1.2:50051", (1,), "nosuch"),
        ("drain interop 10.1.3.2:50051", (1,), r"10\.1\.3\.2:50051"),
        ("move 10.0.0.2:1", (1,), r"10\.0\.0\.2:1"),
        ("move nonsense", (1, 2), "nonsense"),
        ("frobnicate", (2,), "frobnicate"),
    )

    def test_each_is_refused_and_changes_nothing(self):
        with Testbed(prefix("inp"), backends=2) as bed:
            bed.start_agent(bed.config({"interop": {"port": PORT, "backends": [1]}}))
            before = (bed.unpin("services"), bed.unpin("backends"))
            for words, statuses, message in self.REFUSED:
                with self.subTest(words):
                    with self.assertRaises(UnpinRefused) as refused:
                        bed.unpin(*words.split())
                    self.assertIn(refused.exception.status, statuses, refused.exception)
                    self.assertRegex(refused.exception.stderr, message)
                    self.assertEqual((bed.unpin("services"), bed.unpin("backends")), before)
            bed.unpin("add", "backend", "interop", "10.1.2.2:50051")  # the right one is still taken
            self.assertEqual(len(bed.unpin("backends")["backends"]), 2)

    def test_without_an_agent_the_cli_says_so(self):
        with Testbed(prefix("inp"), backends=1) as bed:
            with self.assertRaisesRegex(UnpinRefused, r"exit 1: unpin: .*unpind\.sock"):
                bed.unpin("services")


def changed(config, change):
    config = copy.deepcopy(config)
    change(config)
    return config


class StartTest(unittest.TestCase):
    """unpind must not start. (name, change of a right configuration, what stderr must say)"""

    REFUSED = (
        ("key with a typo", lambda c: c.update(servcies=c.pop("services")), "servcies"),
        ("key with a typo deep inside", lambda c: c["services"][0].update(vipp=1), "vipp"),
        ("no such interface", lambda c: c["interfaces"].append("gw-nosuch"), "gw-nosuch"),
        ("port 0 in a VIP", lambda c: c["services"][0].update(vip=f"{VIP}:0"), "port"),
        ("port 0 in a backend", lambda c: c["services"][0]["backends"][0].update(address="10.1.1.2:0"), "port"),
        ("VIP equal to a backend", lambda c: c["services"][0].update(vip="10.1.1.2:50051"), r"10\.1\.1\.2"),
        ("the same backend twice", lambda c: c["services"][0]["backends"].append(c["services"][0]["backends"][0]),
         r"10\.1\.1\.2:50051"),
        ("weight -1", lambda c: c["services"][0]["backends"][0].update(weight=-1), "weight"),
        ("no SNAT address", lambda c: c.pop("snat"), "snat"),
        ("duration without a unit", lambda c: c.update(moves={"min_age": "soon"}), "min_age"),
    )

    def assert_refused(self, bed, argv, message):
        process = bed.start("gw", argv)
        self.assertNotEqual(process.wait(20), 0, process.stderr)
        self.assertRegex(process.stderr, message)
        self.assertNotRegex(process.stderr, r"\bready\b")
        links = bed.run("gw", ["ip", "link"])
        self.assertNotIn("xdp", links)
        self.assertFalse((bed.bpffs / "unpin").exists() and os.listdir(bed.bpffs / "unpin"), "pins were left")

    def test_wrong_configurations(self):
        with Testbed(prefix("inp"), backends=1) as bed:
            right = bed.config({"interop": {"port": PORT}})
            for name, change, message in self.REFUSED:
                with self.subTest(name):
                    self.assert_refused(bed, bed.agent_argv(bed.write_config(changed(right, change))), message)
            with self.subTest("not YAML"):
                self.assert_refused(bed, bed.agent_argv(bed.write_config("interfaces: [gw-c\nservices: {")), "line")
            with self.subTest("no file"):
                self.assert_refused(bed, bed.agent_argv(bed.directory / "nosuch.yaml"), "nosuch.yaml")

    def test_without_root(self):
        with Testbed(prefix("inp"), backends=1) as bed:
            argv = bed.agent_argv(bed.write_config(bed.config({"interop": {"port": PORT}})))
            unprivileged = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
            bed.directory.chmod(0o755)
            self.assert_refused(bed, unprivileged + argv, "root|CAP_|privilege")

    def test_two_at_once(self):
        with Testbed(prefix("inp"), backends=1) as bed:
            config = bed.config({"interop": {"port": PORT}})
            first = bed.start_agent(config)
            second = Process(bed.inside("gw", bed.agent_argv(bed.directory / "unpind.yaml")))
            self.assertNotEqual(second.wait(20), 0)
            self.assertRegex(second.stderr, "unpind|running|another|in use")
            self.assertTrue(first.running())
            self.assertEqual(len(bed.unpin("services")["services"]), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)

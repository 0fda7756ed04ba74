#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong commands and wrong configurations: a clear error that names what is wrong, and nothing half-applied."""

import copy
import json
import unittest

# First: it says where the others are.
from scene import PORT, VIP, Testbed, UnpinRefused, prefix
from process import run


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


def everything(bed):
    """What a refused start must leave as it was: pins, what the tables hold, kept changes, XDP programs, the socket."""
    pins = sorted(str(path.relative_to(bed.bpffs)) for path in bed.bpffs.rglob("*")
                  if path.suffix != ".debug")  # the kernel's own
    tables = {name: run(["bpftool", "-j", "map", "dump", "pinned", str(bed.bpffs / "unpin" / name)])
              for name in ("controls", "services", "backends") if f"unpin/{name}" in pins}
    kept = {path.name: path.read_text() for path in (bed.directory / "state").iterdir()}
    programs = [(link["ifname"], link.get("xdp")) for link in json.loads(bed.run("gw", ["ip", "-j", "-d", "link"]))]
    return {"pins": pins, "tables": tables, "kept": kept, "programs": [p for p in programs if p[1]],
            "socket": bed.socket.exists()}


NOTHING = {"pins": [], "tables": {}, "kept": {}, "programs": [], "socket": False}


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
        before = everything(bed)
        process = bed.start("gw", argv)
        self.assertNotEqual(process.wait(30), 0, process.stderr)
        self.assertRegex(process.stderr, message)
        self.assertNotRegex(process.stderr, r"\bready\b")
        self.assertEqual(everything(bed), before)

    def test_wrong_configurations(self):
        with Testbed(prefix("inp"), backends=1) as bed:
            right = bed.config({"interop": {"port": PORT}})
            self.assertEqual(everything(bed), NOTHING)
            for name, change, message in self.REFUSED:
                with self.subTest(name):
                    self.assert_refused(bed, bed.agent_argv(bed.write_config(changed(right, change))), message)
            with self.subTest("not YAML"):
                broken = bed.write_config("interfaces: [gw-c\nservices: {")
                self.assert_refused(bed, bed.agent_argv(broken), r"unpind\.yaml:\d+:\d+: ")
            with self.subTest("no file"):
                self.assert_refused(bed, bed.agent_argv(bed.directory / "nosuch.yaml"), "nosuch.yaml")

    def test_wrong_configurations_where_an_agent_was_before(self):
        # Its tables forward on: no refused start may touch them, however far it came.
        with Testbed(prefix("inp"), backends=1) as bed:
            right = bed.config({"interop": {"port": PORT}})
            bed.start_agent(right)
            bed.unpin("add", "service", "kept", "10.9.0.7:50051")
            bed.kill_agent()
            other = changed(right, lambda c: c.update(snat={"addresses": ["10.1.255.77"]}, unknown_tcp="drop"))
            for name, change, message in self.REFUSED + (
                    ("VIP of a service that was added", lambda c: c["services"][0].update(vip="10.9.0.7:50051"), "10.9.0.7"),):
                with self.subTest(name):
                    self.assert_refused(bed, bed.agent_argv(bed.write_config(changed(other, change))), message)
            bed.start_agent(right)
            self.assertEqual({s["name"] for s in bed.unpin("services")["services"]}, {"interop", "kept"})

    def test_another_program_on_the_interface(self):
        with Testbed(prefix("inp"), backends=1) as bed:
            config = bed.config({"interop": {"port": PORT}})
            taken = config["interfaces"][-1]
            neighbour = bed.bin_dir.parent / "tests/vm/neighbour.bpf.o"
            bed.run("gw", ["ip", "link", "set", "dev", taken, "xdpdrv", "obj", neighbour, "sec", "xdp"])
            self.assert_refused(bed, bed.agent_argv(bed.write_config(config)),
                                rf"interface {taken}: .*\bneighbour\b.*ip link set dev {taken} xdp off")
            bed.run("gw", ["ip", "link", "set", "dev", taken, "xdp", "off"])
            bed.start_agent(config)  # what the message says helps

    def test_a_kernel_without_type_information(self):
        with Testbed(prefix("inp"), backends=1) as bed:
            argv = bed.agent_argv(bed.write_config(bed.config({"interop": {"port": PORT}})))
            hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]
            self.assert_refused(bed, hidden + argv,
                                "/sys/kernel/btf/vmlinux: No such file or directory: .*CONFIG_DEBUG_INFO_BTF")

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
            self.assert_refused(bed, bed.agent_argv(bed.directory / "unpind.yaml"), "in use by another unpind: stop it first")
            self.assertTrue(first.running())
            self.assertEqual(len(bed.unpin("services")["services"]), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)

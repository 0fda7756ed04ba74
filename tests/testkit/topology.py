# SPDX-License-Identifier: Apache-2.0
"""The wires of a testbed: namespaces, veth pairs, addresses, routes, offloads.

          PREFIX-client            PREFIX-gw                 PREFIX-b1..N
          eth0 10.0.0.2/24 ------- gw-c   10.0.0.1/24
                                   gw-b1  10.1.1.1/24 ------- eth0 10.1.1.2/24
                                   gw-b2  10.1.2.1/24 ------- eth0 10.1.2.2/24

With impairment a link runs through PREFIX-wire, where tests/testkit/impair joins its two halves.
"""

from process import ProcessFailed, run

VIP_NETWORK = "10.9.0.0/24"
SNAT_ADDRESS = "10.1.255.1"
CLIENT_ADDRESS = "10.0.0.2"


def backend_address(index):
    return f"10.1.{index}.2"


class Topology:
    def __init__(self, prefix, backends, impaired_side="none"):
        self.prefix = prefix
        self.backends = backends
        self.impaired_side = impaired_side
        self.impaired_links = []  # (end towards the host, end towards the gateway) in PREFIX-wire

    def name(self, role):
        return f"{self.prefix}-{role}"

    def namespaces(self):
        roles = ["client", "gw"] + [f"b{i}" for i in range(1, self.backends + 1)]
        if self.impaired_side != "none":
            roles.append("wire")
        return [self.name(role) for role in roles]

    def gateway_interfaces(self):
        return ["gw-c"] + [f"gw-b{i}" for i in range(1, self.backends + 1)]

    def build(self):
        for namespace in self.namespaces():
            run(["ip", "netns", "add", namespace])
            self._inside(namespace, "ip link set lo up; "
                         "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        self._link("client", "gw-c", self.impaired_side == "client")
        for i in range(1, self.backends + 1):
            self._link(f"b{i}", f"gw-b{i}", self.impaired_side == "backend")
        self._configure_gateway()
        self._configure_host("client", CLIENT_ADDRESS, "10.0.0.1", VIP_NETWORK, "10.1.0.0/16")
        for i in range(1, self.backends + 1):
            self._configure_host(f"b{i}", backend_address(i), f"10.1.{i}.1", "default")

    def remove(self):
        """Removes what is there of it, with the processes that still run in it."""
        existing = {line.split()[0] for line in run(["ip", "netns", "list"]).splitlines() if line}
        for namespace in self.namespaces() + [self.name("wire")]:
            if namespace in existing:
                self._end_processes(namespace)
                run(["ip", "netns", "delete", namespace])
                existing.discard(namespace)

    def _end_processes(self, namespace):
        for pid in run(["ip", "netns", "pids", namespace]).split():
            try:
                run(["kill", "-KILL", pid])
            except ProcessFailed:
                pass  # it has ended by itself meanwhile

    def _link(self, host, gateway_interface, impaired):
        host_end = f"name eth0 netns {self.name(host)}"
        gateway_end = f"name {gateway_interface} netns {self.name('gw')}"
        if not impaired:
            run(f"ip link add {host_end} type veth peer {gateway_end}".split())
            return
        wire = self.name("wire")
        near, far = f"{host}-near", f"{host}-far"
        run(f"ip link add {host_end} type veth peer name {near} netns {wire}".split())
        run(f"ip link add name {far} netns {wire} type veth peer {gateway_end}".split())
        for device in (near, far):
            # XDP joins the two: the kernel itself must not answer on them.
            self._inside(wire, f"ip link set {device} up arp off; ethtool -K {device} gro on")
        self.impaired_links.append((near, far))

    def _configure_gateway(self):
        commands = ["sysctl -qw net.ipv4.ip_forward=1",
                    f"ip address add {SNAT_ADDRESS}/32 dev lo",
                    self._up("gw-c", "10.0.0.1")]
        for i in range(1, self.backends + 1):
            commands.append(self._up(f"gw-b{i}", f"10.1.{i}.1"))
        for interface in self.gateway_interfaces():
            commands.append(f"sysctl -qw net.ipv4.conf.{interface}.forwarding=1 "
                            f"net.ipv4.conf.{interface}.rp_filter=0")
        self._inside(self.name("gw"), "; ".join(commands))

    def _configure_host(self, role, address, gateway, *networks):
        # tx off: a checksum left to "hardware" would still be partial when XDP rewrites the packet.
        commands = [self._up("eth0", address), "ethtool -K eth0 tx off"]
        commands += [f"ip route add {network} via {gateway}" for network in networks]
        self._inside(self.name(role), "; ".join(commands))

    def _up(self, device, address):
        # gro on: without it (or an XDP program) a veth drops what XDP redirects into its peer. Set while the device
        # is down, it is not announced to the peer, and the redirect fails all the same (seen on 6.18).
        return (f"ip address add {address}/24 dev {device}; ip link set {device} up; "
                f"ethtool -K {device} gro on")

    def _inside(self, namespace, script):
        run(["nsenter", f"--net=/run/netns/{namespace}", "sh", "-ec", script])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree's own checks must go red: each is shown a small tree with one fault seeded in it."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_files
import check_layers

APACHE = "// SPDX-License-Identifier: Apache-2.0\n"


class SeededTree(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        for folder in check_layers.MAY_INCLUDE:
            (self.root / folder).mkdir(parents=True)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class Layers(SeededTree):
    def check(self, path, include, complaint):
        self.write(path, f"{APACHE}#include {include}\n")
        found = list(check_layers.violations(self.root))
        if complaint is None:
            self.assertEqual(found, [])
        else:
            self.assertEqual(len(found), 1, found)
            self.assertIn(path, found[0])
            self.assertIn(complaint, found[0])

    def test_an_empty_tree_is_clean(self):
        self.assertEqual(list(check_layers.violations(self.root)), [])

    def test_policy_may_know_the_model_and_not_the_agent(self):
        self.check("userspace/policy/a.h", '"userspace/model/service.h"', None)
        self.check("userspace/policy/a.h", '"userspace/agent/controller.h"', "userspace/policy may not include")

    def test_datapath_may_not_know_who_drives_it(self):
        self.check("userspace/datapath/a.cc", '"userspace/model/ports.h"', None)
        self.check("userspace/datapath/a.cc", '"userspace/agent/controller.h"', "userspace/datapath may not include")

    def test_only_datapath_opens_bpf(self):
        self.check("userspace/datapath/a.cc", '"bpf/abi.h"', None)
        self.check("userspace/agent/b.cc", '"bpf/abi.h"', "userspace/agent may not include bpf/abi.h")

    def test_only_datapath_calls_libbpf(self):
        self.check("userspace/rebalance/a.cc", "<bpf/bpf.h>", "may include bpf/bpf.h")

    def test_only_the_edge_speaks_grpc(self):
        self.check("userspace/admin/a.cc", "<grpcpp/grpcpp.h>", None)
        self.check("userspace/agent/a.cc", '"grpcpp/server.h"', "may include grpcpp/server.h")

    def test_bpf_includes_nothing_outside_itself(self):
        self.check("bpf/a.h", '"userspace/base/clock.h"', "bpf may not include")

    def test_an_indented_include_counts(self):
        self.write("userspace/model/a.h", '#if 1\n  #  include "userspace/admin/convert.h"\n#endif\n')
        self.assertEqual(len(list(check_layers.violations(self.root))), 1)

    def test_a_new_folder_must_enter_the_map(self):
        (self.root / "userspace/misc").mkdir()
        self.assertIn("userspace/misc", list(check_layers.violations(self.root))[0])


class Files(SeededTree):
    def complaints(self, path, text):
        self.write(path, text)
        return list(check_files.violations(self.root))

    def test_a_file_of_400_lines_is_fine_and_one_of_401_is_not(self):
        self.assertEqual(self.complaints("userspace/base/a.h", APACHE + "\n" * 399), [])
        self.assertIn("401 lines", self.complaints("userspace/base/a.h", APACHE + "\n" * 400)[0])

    def test_a_licence_line_is_asked_for(self):
        self.assertIn("SPDX", self.complaints("userspace/base/a.cc", "int x;\n")[0])

    def test_the_kernel_side_must_be_gpl(self):
        self.assertIn("GPL-2.0", self.complaints("bpf/a.h", APACHE)[0])
        (self.root / "bpf/a.h").unlink()
        self.assertIn("GPL-2.0", self.complaints("tests/x/drop.bpf.c", APACHE)[0])

    def test_scripts_without_a_suffix_are_seen(self):
        self.write("tools/run", "#!/bin/bash\necho\n")
        (self.root / "tools/run").chmod(0o755)
        self.assertEqual(len(list(check_files.violations(self.root))), 1)


if __name__ == "__main__":
    unittest.main()

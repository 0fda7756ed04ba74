// SPDX-License-Identifier: Apache-2.0
// What the loaded objects tell about themselves.
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "bpf/goaway.skel.h"
#include "bpf/unpin.skel.h"
#include "tests/testkit/data_plane.h"

namespace unpin::testkit {

absl::StatusOr<std::map<std::string, uint32_t>> DataPlane::VerifiedInstructions() const {
  std::map<std::string, uint32_t> counts;
  for (const bpf_object* object : {ingress_->obj, goaway_->obj}) {
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object) {
      bpf_prog_info info = {};
      uint32_t size = sizeof(info);
      if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) != 0) {
        return absl::ErrnoToStatus(errno, absl::StrCat("ask about ", bpf_program__name(program)));
      }
      counts[bpf_program__name(program)] = info.verified_insns;
    }
  }
  return counts;
}

std::string DataPlane::NameOf(const char* enum_name, uint32_t value) const {
  const btf* types = bpf_object__btf(ingress_->obj);
  const int id = btf__find_by_name_kind(types, enum_name, BTF_KIND_ENUM);
  if (id > 0) {
    const btf_type* type = btf__type_by_id(types, id);
    for (int i = 0; i < btf_vlen(type); ++i) {
      if (btf_enum(type)[i].val != static_cast<int>(value)) continue;
      return btf__name_by_offset(types, btf_enum(type)[i].name_off);
    }
  }
  return absl::StrCat(enum_name, " ", value);
}

}  // namespace unpin::testkit

// SPDX-License-Identifier: Apache-2.0
// No frame makes the parser read past its end.
#include <cstddef>
#include <cstdint>

#include "tests/host/data_plane_host.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 65536) host_parse(data, static_cast<__u32>(size));
  return 0;
}

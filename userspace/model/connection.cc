// SPDX-License-Identifier: Apache-2.0
#include "userspace/model/connection.h"

namespace unpin {

absl::string_view ToString(Protocol protocol) {
  switch (protocol) {
    case Protocol::kUnknown:
      return "unknown";
    case Protocol::kH2:
      return "h2";
    case Protocol::kTls:
      return "tls";
    case Protocol::kHttp1:
      return "http1";
    case Protocol::kOpaque:
      return "opaque";
  }
  return "invalid";
}

absl::string_view ToString(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "";
    case Refusal::kNotFound:
      return "not found";
    case Refusal::kUndecided:
      return "protocol not known yet";
    case Refusal::kTls:
      return "tls";
    case Refusal::kHttp1:
      return "http1";
    case Refusal::kOpaque:
      return "opaque";
    case Refusal::kTooYoung:
      return "too young";
    case Refusal::kNoResponse:
      return "no response yet";
    case Refusal::kClosing:
      return "closing";
    case Refusal::kServerGoaway:
      return "server sent GOAWAY";
    case Refusal::kAlreadyMoved:
      return "already moved";
    case Refusal::kBehind:
      return "out of sync (recovering)";
    case Refusal::kLost:
      return "out of sync";
  }
  return "invalid";
}

}  // namespace unpin

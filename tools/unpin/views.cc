// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin/views.h"

#include <google/protobuf/util/time_util.h>

#include <cctype>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/unpin/table_text.h"

namespace unpin {
namespace {

using google::protobuf::util::TimeUtil;

std::string Bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return unit == 0 ? absl::StrFormat("%.0f B", bytes) : absl::StrFormat("%.1f %s", bytes, kUnits[unit]);
}

std::string Age(const google::protobuf::Duration& duration) {
  const double seconds = TimeUtil::DurationToNanoseconds(duration) / 1e9;
  if (seconds < 120) return absl::StrFormat("%.1fs", seconds);
  return seconds < 7200 ? absl::StrFormat("%.0fm", seconds / 60) : absl::StrFormat("%.0fh", seconds / 3600);
}

std::string Milliseconds(bool has, const google::protobuf::Timestamp& from,
                         const google::protobuf::Timestamp& to) {
  if (!has) return "-";
  return absl::StrFormat("%.1f", TimeUtil::DurationToNanoseconds(to - from) / 1e6);
}

std::string Lower(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  return name;
}

std::string AtPort(const std::string& address, uint32_t port) { return absl::StrCat(address, ":", port); }

}  // namespace

std::string TextOf(const v1::AgentStatus& status) {
  std::vector<Row> rows = {
      {"version", status.version()},
      {"layout", status.layout().substr(0, 12)},
      {"started", TimeUtil::ToString(status.started())},
      {"adopted", status.adopted() ? "yes" : "no"},
      {"connections", absl::StrCat(status.connections(), " of ", status.connection_capacity())}};
  for (const v1::Interface& interface : status.interfaces()) {
    rows.push_back({absl::StrCat("interface ", interface.name()),
                    absl::StrCat(interface.mode(), interface.dispatcher() ? ", beside other programs" : "")});
  }
  return FormatTable({"AGENT", ""}, rows);
}

std::string TextOf(const v1::ListServicesResponse& response) {
  std::vector<Row> rows;
  for (const v1::Service& s : response.services()) {
    rows.push_back({s.name(), AtPort(s.address(), s.port()), s.snat() ? "on" : "off",
                    absl::StrCat(s.backends()), absl::StrCat(s.connections())});
  }
  return FormatTable({"SERVICE", "VIP", "SNAT", "BACKENDS", "CONNS"}, rows);
}

std::string TextOf(const v1::ListBackendsResponse& response) {
  std::vector<Row> rows;
  for (const v1::Backend& b : response.backends()) {
    rows.push_back({b.service(), AtPort(b.address(), b.port()), absl::StrCat(b.weight()),
                    absl::StrCat(b.connections()), absl::StrFormat("%.1f", b.requests_per_second()),
                    absl::StrCat(b.open_streams()), Bytes(b.bytes_per_second()),
                    Lower(v1::Backend::State_Name(b.state())) + (b.trouble().empty() ? "" : ": " + b.trouble())});
  }
  return FormatTable({"SERVICE", "BACKEND", "WEIGHT", "CONNS", "RPS", "OPEN", "BYTES/S", "STATE"}, rows);
}

std::string TextOf(const v1::ListConnectionsResponse& response) {
  std::vector<Row> rows;
  for (const v1::Connection& c : response.connections()) {
    rows.push_back({c.client(), c.service(), c.backend(), c.protocol(), Age(c.age()), Age(c.idle()),
                    absl::StrFormat("%.1f", c.requests_per_second()), absl::StrCat(c.open_streams()),
                    Bytes(c.bytes_to_server()), Bytes(c.bytes_to_client()),
                    c.spliceable() ? "yes" : c.not_spliceable()});
  }
  return FormatTable({"CLIENT", "SERVICE", "BACKEND", "PROTOCOL", "AGE", "IDLE", "RPS", "OPEN", "TO SERVER",
                      "TO CLIENT", "SPLICEABLE"},
                     rows);
}

std::string TextOf(const v1::ListMovesResponse& response) {
  std::vector<Row> rows;
  for (const v1::Move& m : response.moves()) {
    rows.push_back({absl::StrCat(m.id()), m.client(), m.from(), m.to(),
                    Lower(v1::Move::State_Name(m.state())), m.reason(),
                    Milliseconds(m.has_sent() && m.has_acknowledged(), m.sent(), m.acknowledged()),
                    Milliseconds(m.has_sent() && m.has_reconnected(), m.sent(), m.reconnected()),
                    absl::StrCat(m.goaways_sent()), m.detail()});
  }
  return FormatTable(
      {"MOVE", "CLIENT", "FROM", "TO", "STATE", "REASON", "ACK MS", "RECONNECT MS", "GOAWAYS", "DETAIL"}, rows);
}

std::string TextOf(const v1::RebalanceResponse& response) {
  std::vector<Row> rows;
  for (const v1::PlannedMove& m : response.moves()) {
    rows.push_back({m.service(), m.client(), m.from(), m.to(), absl::StrFormat("%.3g", m.load()),
                    absl::StrFormat("%.2f -> %.2f", m.load_before(), m.load_after())});
  }
  std::string text;
  for (const std::string& remark : response.remarks()) absl::StrAppend(&text, remark, "\n");
  if (!rows.empty()) {
    absl::StrAppend(&text, FormatTable({"SERVICE", "CLIENT", "FROM", "TO", "LOAD", "FROM'S LOAD OF SHARE"}, rows));
  }
  if (response.paused()) absl::StrAppend(&text, "paused: nothing is moved but by order and drain\n");
  return text;
}

std::string TopText(const v1::ListBackendsResponse& backends, const v1::ListMovesResponse& moves) {
  std::map<std::string, double> totals;
  std::map<std::string, int> begun, landed;
  for (const v1::Backend& b : backends.backends()) totals[b.service()] += b.requests_per_second();
  for (const v1::Move& m : moves.moves()) {
    ++begun[m.from()];
    landed[m.to()] += m.state() == v1::Move::RECONNECTED;
  }
  std::vector<Row> rows;
  for (const v1::Backend& b : backends.backends()) {
    const std::string at = AtPort(b.address(), b.port());
    const double total = totals[b.service()];
    rows.push_back({b.service(), at, Lower(v1::Backend::State_Name(b.state())), absl::StrCat(b.connections()),
                    absl::StrFormat("%.1f", b.requests_per_second()),
                    absl::StrFormat("%.0f %%", total > 0 ? 100 * b.requests_per_second() / total : 0),
                    absl::StrFormat("%.2f", b.load_of_share()), absl::StrCat(b.open_streams()),
                    b.mean_latency_seconds() > 0 ? absl::StrFormat("%.1f ms", b.mean_latency_seconds() * 1000) : "-",
                    absl::StrCat(begun[at], "/", landed[at]), b.trouble()});
  }
  return FormatTable({"SERVICE", "BACKEND", "STATE", "CONNS", "RPS", "SHARE", "OF TARGET", "OPEN", "LATENCY", "MOVED OFF/ON", ""},
                     rows);
}

std::string TextOf(const v1::Counters& counters) {
  std::vector<Row> rows;
  for (const v1::Counter& c : counters.verdicts()) rows.push_back({c.name(), absl::StrCat(c.value())});
  for (const v1::Counter& c : counters.agent()) rows.push_back({c.name(), absl::StrCat(c.value())});
  return FormatTable({"COUNTER", "VALUE"}, rows);
}

std::string TextOf(const v1::Event& event) {
  return absl::StrCat(TimeUtil::ToString(event.time()), "  ", event.type(), "  ", event.message(), "\n");
}

}  // namespace unpin

// SPDX-License-Identifier: Apache-2.0
// The scene of every data-plane test: one service, two backends, empty maps, the real programs, and connections whose
// sequence numbers are written relative to the first payload byte of their direction.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/testkit/data_plane.h"
#include "tests/testkit/private_network.h"

namespace unpin::testkit {

inline constexpr char kVip[] = "10.9.0.1";
inline constexpr uint16_t kVipPort = 80;
inline constexpr char kSnatAddress[] = "10.1.255.1";
inline constexpr uint32_t kService = 3;
inline constexpr uint32_t kBackend[] = {7, 8};  // ids, so that none is 0 or equal to its place
inline constexpr const char* kBackendAddress[] = {"10.1.1.2", "10.1.2.2"};
inline constexpr uint16_t kBackendPort[] = {50051, 50052};
inline constexpr uint32_t kSyn0 = UINT32_MAX;  // the SYN is one before the first payload byte

unpin_flow_key FlowKey(const std::string& source, uint16_t source_port,
                       const std::string& destination, uint16_t destination_port);

// What one end puts on the wire. Numbers are relative: `seq` to the sender's stream, `ack` and `sack` to the other's.
struct Segment {
  uint32_t seq = 0;
  uint32_t ack = 0;
  uint8_t flags = kAck;
  uint16_t window = 502;
  std::optional<std::pair<uint32_t, uint32_t>> timestamp = {};
  std::vector<std::pair<uint32_t, uint32_t>> sack = {};
  Bytes options = {};  // in front of the two above; each of those is preceded by two NOPs
  Bytes payload = {};
  uint8_t ttl = 64;
};

// Whose connection it is, and where each direction begins.
struct Ends {
  std::string client = "10.0.0.2";
  std::string vip = kVip;
  uint16_t client_port = 40000;
  uint32_t client_isn = 1000000;
  uint32_t server_isn = 3000000000;
  bool snat = true;
  int backend = 0;
};

class Connection;

class DataPlaneTest : public ::testing::Test {
 protected:
  friend class Connection;  // drives the scene of its test
  static void SetUpTestSuite();
  void SetUp() override;

  // Loads anew with other sizes; the scene is set again.
  void Reload(const DataPlaneSizes& sizes);
  void SetScene();
  void UseBackend(int which);  // in every slot of the table
  void SetBackendState(int which, uint32_t state);
  void SetServiceFlags(uint32_t flags, const std::string& vip = kVip);
  void SetControls() { EXPECT_TRUE(plane_->PutControls(controls_).ok()); }

  Outcome Run(const Bytes& frame, uint32_t ifindex);
  // The frame leaves as `out`, with this verdict and no other.
  void ExpectRun(const Bytes& in, uint32_t ifindex, uint32_t verdict, uint32_t action,
                 const Bytes& out, std::source_location where = std::source_location::current());
  void ExpectPass(const Bytes& frame, uint32_t verdict,
                  std::source_location where = std::source_location::current());
  std::vector<unpin_event> TakeEvents(uint32_t type);

  static PrivateNetwork network_;
  std::shared_ptr<DataPlane> plane_;
  unpin_controls controls_ = {};
};

// One connection through the data plane. Every expectation is a whole frame, checksums included.
class Connection {
 public:
  Connection(DataPlaneTest& test, Ends ends) : test_(test), ends_(std::move(ends)) {}
  explicit Connection(DataPlaneTest& test) : Connection(test, Ends{}) {}

  using Where = std::source_location;
  // SYN, SYN-ACK, ACK.
  void Open(Where where = Where::current());
  // The SYN alone; learns the source port the data plane chose, which must be one of those allowed.
  void SendSyn(uint32_t verdict = UNPIN_FORWARD_SYN,
               const Segment& syn = {.seq = kSyn0, .flags = kSyn}, Where where = Where::current());
  void SendSynAck(Where where = Where::current());

  // The segment reaches the other end as it is, but for addresses, ports, MACs and TTL, or as `arrives`.
  void ClientSends(const Segment& segment, uint32_t verdict, Where where = Where::current());
  void ClientSends(const Segment& segment, uint32_t verdict, const Segment& arrives,
                   Where where = Where::current());
  void ServerSends(const Segment& segment, uint32_t verdict, Where where = Where::current());
  void ServerSends(const Segment& segment, uint32_t verdict, const Segment& arrives,
                   Where where = Where::current());
  void ClientIsDropped(const Segment& segment, uint32_t verdict, Where where = Where::current());
  void ServerIsDropped(const Segment& segment, uint32_t verdict, Where where = Where::current());

  // Preface, SETTINGS both ways and one answered request; afterwards the server's next byte is kHttp2Start, at a
  // boundary, and the client has acknowledged all.
  void StartHttp2(Where where = Where::current());
  static constexpr uint32_t kHttp2Start = 162;
  static constexpr uint32_t kClientStart = 77;

  unpin_arm_args Arm(bool allow_trim = false, uint64_t min_age_ns = 0);
  // Arms an idle connection and expects the commit at kHttp2Start.
  void Splice(Where where = Where::current());

  Bytes FromClient(const Segment& segment) const;
  Bytes ToServer(const Segment& segment) const;
  Bytes FromServer(const Segment& segment) const;
  Bytes ToClient(const Segment& segment) const;

  unpin_flow_key c2s() const;
  unpin_flow_key s2c() const;
  unpin_flow C2sFlow() const;
  unpin_flow S2cFlow() const;
  uint16_t source_port() const { return source_port_; }
  uint32_t server_first() const { return ends_.server_isn + 1; }
  uint32_t client_first() const { return ends_.client_isn + 1; }
  uint32_t client_ifindex() const;
  uint32_t server_ifindex() const;

 private:
  std::string source() const { return ends_.snat ? kSnatAddress : ends_.client; }
  TcpFields Fields(const Segment& segment, uint32_t seq_base, uint32_t ack_base) const;

  DataPlaneTest& test_;
  Ends ends_;
  uint16_t source_port_ = 0;  // towards the backend
};

}  // namespace unpin::testkit

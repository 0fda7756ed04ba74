// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/agent/temporary_directory.h"

namespace unpin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kWhole[] = R"(interfaces: [eth0, eth1]
snat: {addresses: [10.1.255.1, 10.1.255.2], ports: 2000-3000}
unknown_tcp: drop
limits: {connections: 4096}
expiry: {established: 1h, closing: 3m, closed: 61s}
moves: {min_age: 2s, trim_after: 30ms, arm_timeout: 3s, resend_interval: 25ms, ack_timeout: 31s, reconnect_timeout: 32s}
services:
  - name: greeter
    vip: 10.9.0.1:50051
    snat: false
    backends:
      - {address: 10.1.1.2:50051, weight: 7}
      - {address: 10.1.2.2:50051, draining: true}
  - name: empty-one
    vip: 10.9.0.2:80
)";

absl::StatusOr<Config> Parse(const std::string& text) { return ParseConfig(text, "u.yaml"); }

std::string ErrorOf(const std::string& text) {
  const absl::Status status = Parse(text).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(Config, EveryFieldIsRead) {
  const absl::StatusOr<Config> config = Parse(kWhole);
  ASSERT_TRUE(config.ok()) << config.status();
  const Settings& settings = config->settings;
  EXPECT_THAT(settings.interfaces, ElementsAre("eth0", "eth1"));
  EXPECT_THAT(settings.snat.addresses, ElementsAre(IpAddress{0x0a01ff01}, IpAddress{0x0a01ff02}));
  EXPECT_EQ(settings.snat.port_min, 2000);
  EXPECT_EQ(settings.snat.port_max, 3000);
  EXPECT_FALSE(settings.reset_unknown);
  EXPECT_EQ(settings.connections, 4096u);
  EXPECT_EQ(settings.expiry.established, hours(1));
  EXPECT_EQ(settings.expiry.closing, minutes(3));
  EXPECT_EQ(settings.expiry.closed, seconds(61));
  EXPECT_EQ(settings.moves.min_age, seconds(2));
  EXPECT_EQ(settings.moves.trim_after, milliseconds(30));
  EXPECT_EQ(settings.moves.arm_timeout, seconds(3));
  EXPECT_EQ(settings.moves.resend_interval, milliseconds(25));
  EXPECT_EQ(settings.moves.ack_timeout, seconds(31));
  EXPECT_EQ(settings.moves.reconnect_timeout, seconds(32));

  const Endpoint one = {{0x0a010102}, 50051}, two = {{0x0a010202}, 50051};
  const Desired wanted = {
      {"empty-one",
       {.spec = {.name = "empty-one", .vip = {{0x0a090002}, 80}, .snat = true}, .backends = {}}},
      {"greeter",
       {.spec = {.name = "greeter", .vip = {{0x0a090001}, 50051}, .snat = false},
        .backends = {{one, {.endpoint = one, .weight = 7, .draining = false}},
                     {two, {.endpoint = two, .weight = 100, .draining = true}}}}}};
  EXPECT_EQ(config->desired, wanted);
}

// README's table of settings: what holds when nothing is said.
TEST(Config, WhatIsNotSaidHasItsDefault) {
  const absl::StatusOr<Config> config = Parse("interfaces: [eth0]\nservices:\n");
  ASSERT_TRUE(config.ok()) << config.status();
  const Settings& settings = config->settings;
  EXPECT_TRUE(settings.snat.addresses.empty());
  EXPECT_EQ(settings.snat.port_min, 1024);
  EXPECT_EQ(settings.snat.port_max, 32767);
  EXPECT_TRUE(settings.reset_unknown);
  EXPECT_EQ(settings.connections, 131072u);
  EXPECT_EQ(settings.expiry.established, hours(2));
  EXPECT_EQ(settings.expiry.closing, minutes(2));
  EXPECT_EQ(settings.expiry.closed, seconds(60));
  EXPECT_EQ(settings.moves.min_age, seconds(1));
  EXPECT_EQ(settings.moves.trim_after, milliseconds(20));
  EXPECT_EQ(settings.moves.arm_timeout, seconds(2));
  EXPECT_EQ(settings.moves.resend_interval, milliseconds(20));
  EXPECT_EQ(settings.moves.ack_timeout, seconds(30));
  EXPECT_EQ(settings.moves.reconnect_timeout, seconds(30));
  EXPECT_TRUE(config->desired.empty());
}

struct BadFile {
  const char* text;
  const char* complaint;  // line and column count from 1
};

class BadConfig : public testing::TestWithParam<BadFile> {};

TEST_P(BadConfig, IsRefusedWithLineColumnAndField) {
  EXPECT_THAT(ErrorOf(GetParam().text), StartsWith(GetParam().complaint));
}

INSTANTIATE_TEST_SUITE_P(
    Structure, BadConfig,
    testing::Values(
        BadFile{"", "u.yaml: the file: is empty"},
        BadFile{"# only a remark\n", "u.yaml: the file: is empty"},
        BadFile{"- eth0\n", "u.yaml:1:1: the file: is not a map of fields"},
        BadFile{"interfaces: [eth0]\n  snat: {}\n", "u.yaml:2:"},
        BadFile{"interfaces: [eth0\n", "u.yaml:2:1: "},
        BadFile{"interfaces: [eth0]\n---\nunknown_tcp: drop\n",
                "u.yaml:3:1: the file: has more than one document"},
        BadFile{"interfaces: [eth0]\ninterfaces: [eth1]\n",
                "u.yaml:2:1: interfaces: is given twice"},
        BadFile{"interface: [eth0]\n",
                "u.yaml:1:1: interface: is not known here; known are interfaces, snat,"},
        BadFile{"interfaces: [a]\nsnat:\n  address: [10.0.0.1]\n",
                "u.yaml:3:3: snat.address: is not known here"},
        BadFile{"interfaces: [a]\nlimits: {flows: 1}\n",
                "u.yaml:2:10: limits.flows: is not known here"},
        BadFile{"interfaces: [a]\nexpiry: {idle: 1s}\n",
                "u.yaml:2:10: expiry.idle: is not known here"},
        BadFile{"interfaces: [a]\nmoves:\n  age: 1s\n", "u.yaml:3:3: moves.age: is not known here"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  port: 1\n",
                "u.yaml:5:3: services[0].port: is not known here"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  backends: [{adress: "
                "10.1.1.2:1}]\n",
                "u.yaml:5:15: services[0].backends[0].adress: is not known here"},
        BadFile{"interfaces: [a]\nservices: {}\n", "u.yaml:2:11: services: is not a list"},
        BadFile{"interfaces: [a]\nmoves: 20ms\n", "u.yaml:2:8: moves: is not a map of fields"},
        BadFile{"interfaces: [a]\nservices:\n- 10.9.0.1:1\n",
                "u.yaml:3:3: services[0]: is not a map of fields"},
        BadFile{"interfaces: [a]\n? [x]\n: y\n", "u.yaml:2:3: "}));

INSTANTIATE_TEST_SUITE_P(
    Fields, BadConfig,
    testing::Values(
        BadFile{"services: []\n", "u.yaml:1:1: interfaces: names no interface"},
        BadFile{"interfaces: []\n", "u.yaml:1:1: interfaces: names no interface"},
        BadFile{"interfaces: eth0\n", "u.yaml:1:13: interfaces: is not a list"},
        BadFile{"interfaces: [[eth0]]\n", "u.yaml:1:14: interfaces[0]: is not a text"},
        BadFile{"interfaces: [eth0, \"\"]\n",
                "u.yaml:1:20: interfaces[1]: \"\" is not the name of an interface"},
        BadFile{"interfaces: [eth0, eth1, eth0]\n",
                "u.yaml:1:26: interfaces[2]: eth0 is given twice"},
        BadFile{"interfaces: [a]\nsnat: {addresses: [10.0.0]}\n",
                "u.yaml:2:20: snat.addresses[0]: \"10.0.0\" is not an"},
        BadFile{"interfaces: [a]\nsnat: {addresses: [10.0.0.1, 10.0.0.1]}\n",
                "u.yaml:2:30: snat.addresses[1]: 10.0.0.1 is given twice"},
        BadFile{
            "interfaces: [a]\nsnat: {addresses: "
            "[1.0.0.1,1.0.0.2,1.0.0.3,1.0.0.4,1.0.0.5,1.0.0.6,1.0.0.7,1.0.0.8,"
            "1.0.0.9,1.0.0.10,1.0.0.11,1.0.0.12,1.0.0.13,1.0.0.14,1.0.0.15,1.0.0.16,1.0.0.17]}\n",
            "u.yaml:2:19: snat.addresses: more than 16"},
        BadFile{"interfaces: [a]\nsnat: {ports: 0-10}\n",
                "u.yaml:2:15: snat.ports: \"0-10\" is not a range"},
        BadFile{"interfaces: [a]\nsnat: {ports: 20-10}\n",
                "u.yaml:2:15: snat.ports: \"20-10\" is not a range"},
        BadFile{"interfaces: [a]\nsnat: {ports: 1024-65536}\n",
                "u.yaml:2:15: snat.ports: \"1024-65536\" is not"},
        BadFile{"interfaces: [a]\nsnat: {ports: 1024}\n",
                "u.yaml:2:15: snat.ports: \"1024\" is not a range"},
        BadFile{"interfaces: [a]\nsnat: {ports: \"\"}\n",
                "u.yaml:2:15: snat.ports: \"\" is not a range"},
        BadFile{"interfaces: [a]\nunknown_tcp: pass\n",
                "u.yaml:2:14: unknown_tcp: \"pass\" is not reset or drop"},
        BadFile{"interfaces: [a]\nlimits: {connections: 15}\n",
                "u.yaml:2:23: limits.connections: 15 is not in 16.."},
        BadFile{"interfaces: [a]\nlimits: {connections: 8388609}\n",
                "u.yaml:2:23: limits.connections: 8388609 is not"},
        BadFile{"interfaces: [a]\nlimits: {connections: many}\n",
                "u.yaml:2:23: limits.connections: many is not in"},
        BadFile{"interfaces: [a]\nlimits: {connections: []}\n",
                "u.yaml:2:23: limits.connections: is not a number"}));

INSTANTIATE_TEST_SUITE_P(
    Durations, BadConfig,
    testing::Values(BadFile{"interfaces: [a]\nexpiry: {established: 20}\n",
                            "u.yaml:2:23: expiry.established: \"20\" is not a duration"},
                    BadFile{"interfaces: [a]\nexpiry: {established: -1s}\n",
                            "u.yaml:2:23: expiry.established: \"-1s\" is not a"},
                    BadFile{"interfaces: [a]\nexpiry: {established: inf}\n",
                            "u.yaml:2:23: expiry.established: \"inf\" is not a"},
                    BadFile{"interfaces: [a]\nexpiry: {established: 8761h}\n",
                            "u.yaml:2:23: expiry.established: \"8761h\" is not"},
                    BadFile{"interfaces: [a]\nexpiry: {established: [1s]}\n",
                            "u.yaml:2:23: expiry.established: is not a duration"},
                    // Every connection would be forgotten with the next second.
                    BadFile{"interfaces: [a]\nexpiry: {established: 0}\n",
                            "u.yaml:2:23: expiry.established: is shorter than 1s"},
                    BadFile{"interfaces: [a]\nexpiry: {closing: 999ms}\n",
                            "u.yaml:2:19: expiry.closing: is shorter than 1s"},
                    BadFile{"interfaces: [a]\nexpiry: {closed: 0}\n",
                            "u.yaml:2:18: expiry.closed: is shorter than 1s"},
                    BadFile{"interfaces: [a]\nmoves: {min_age: soon}\n",
                            "u.yaml:2:18: moves.min_age: \"soon\" is not a duration"},
                    BadFile{"interfaces: [a]\nmoves: {trim_after: x}\n",
                            "u.yaml:2:21: moves.trim_after: \"x\" is not a duration"},
                    BadFile{"interfaces: [a]\nmoves: {arm_timeout: 0}\n",
                            "u.yaml:2:22: moves.arm_timeout: is shorter than 1ms"},
                    BadFile{"interfaces: [a]\nmoves: {resend_interval: 999us}\n",
                            "u.yaml:2:26: moves.resend_interval: is shorter"},
                    BadFile{"interfaces: [a]\nmoves: {ack_timeout: 0}\n",
                            "u.yaml:2:22: moves.ack_timeout: is shorter than 1ms"},
                    BadFile{"interfaces: [a]\nmoves: {reconnect_timeout: 0}\n",
                            "u.yaml:2:28: moves.reconnect_timeout: is shorter"}));

constexpr char kService[] = "interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n";

INSTANTIATE_TEST_SUITE_P(
    Services, BadConfig,
    testing::Values(
        BadFile{"interfaces: [a]\nservices:\n- vip: 10.9.0.1:1\n",
                "u.yaml:3:3: services[0].name: is missing"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n",
                "u.yaml:3:3: services[0].vip: is missing"},
        BadFile{"interfaces: [a]\nservices:\n- name: S_1\n  vip: 10.9.0.1:1\n",
                "u.yaml:3:9: services[0].name: \"S_1\" is not 1 to 63 of a-z, 0-9 and -"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1\n",
                "u.yaml:4:8: services[0].vip: \"10.9.0.1\" has no"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:0\n",
                "u.yaml:4:8: services[0].vip: \"10.9.0.1:0\": port"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  snat: maybe\n",
                "u.yaml:5:9: services[0].snat: \"maybe\" is not true or false"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n- name: s\n  vip: "
                "10.9.0.1:2\n",
                "u.yaml:5:9: services[1].name: \"s\" is given twice"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  backends:\n  - "
                "{weight: 1}\n",
                "u.yaml:6:5: services[0].backends[0].address: is missing"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  backends:\n  - "
                "{address: 10.1.1.2:x}\n",
                "u.yaml:6:15: services[0].backends[0].address: \"10.1.1.2:x\": port"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  backends:\n"
                "  - {address: 10.1.1.2:1, weight: -1}\n",
                "u.yaml:6:35: services[0].backends[0].weight: -1 is not in 0..65535"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  backends:\n"
                "  - {address: 10.1.1.2:1, weight: 65536}\n",
                "u.yaml:6:35: services[0].backends[0].weight: 65536 is not in 0..65535"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  backends:\n"
                "  - {address: 10.1.1.2:1, draining: 1}\n",
                "u.yaml:6:37: services[0].backends[0].draining: \"1\" is not true or false"},
        BadFile{"interfaces: [a]\nservices:\n- name: s\n  vip: 10.9.0.1:1\n  backends:\n"
                "  - {address: 10.1.1.2:1}\n  - {address: 10.1.1.2:1}\n",
                "u.yaml:7:15: services[0].backends[1].address: 10.1.1.2:1 is given twice"}));

TEST(Config, DurationsMayBeCompound) {
  const auto config =
      Parse("interfaces: [a]\nexpiry: {established: 1h30m, closed: 1.5s}\nmoves: {min_age: 0}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->settings.expiry.established, minutes(90));
  EXPECT_EQ(config->settings.expiry.closed, milliseconds(1500));
  EXPECT_EQ(config->settings.moves.min_age, seconds(0));
}

TEST(Config, TheSameBackendMayServeTwoServices) {
  const std::string backend = "  backends: [{address: 10.1.1.2:1}]\n";
  const auto config = Parse(kService + backend + "- name: t\n  vip: 10.9.0.2:1\n" + backend);
  EXPECT_TRUE(config.ok()) << config.status();
}

TEST(LoadConfig, NamesAFileThatCannotBeRead) {
  const TemporaryDirectory directory;
  const absl::Status status = LoadConfig(directory / "none.yaml").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(directory / "none.yaml"));
  EXPECT_FALSE(LoadConfig(directory.path()).ok());  // a directory
}

TEST(LoadConfig, ReadsTheFile) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "u.yaml") << kWhole;
  const absl::StatusOr<Config> config = LoadConfig(directory / "u.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->desired.size(), 2u);
}

}  // namespace
}  // namespace unpin

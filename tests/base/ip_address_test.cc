// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/ip_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace unpin {
namespace {

TEST(IpAddress, IsReadMostSignificantByteFirst) {
  const auto address = ParseIpAddress("10.1.2.3");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->bits, 0x0a010203u);
}

TEST(IpAddress, PrintsAsItIsWritten) {
  for (const char* text : {"0.0.0.0", "10.1.2.3", "192.0.2.255", "255.255.255.255"}) {
    const auto address = ParseIpAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(IpAddress, RefusesWhatIsNoDottedQuad) {
  for (const char* text : {"", "10.1.2", "10.1.2.3.4", "10.1.2.256", "10.1.2.-3", " 10.1.2.3",
                           "10.1.2.3 ", "::1", "host", "0x0a.1.2.3", "010.1.2.3", "10..2.3"}) {
    const auto address = ParseIpAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
    EXPECT_THAT(address.status().message(), testing::HasSubstr(text));
  }
}

TEST(IpAddress, RefusesTextBeyondAnEmbeddedZero) {
  EXPECT_FALSE(ParseIpAddress(absl::string_view("10.1.2.3\0evil", 13)).ok());
}

TEST(Endpoint, RoundTripsAtTheEndsOfThePortRange) {
  for (const char* text : {"10.9.0.1:1", "10.9.0.1:50051", "10.9.0.1:65535"}) {
    const auto endpoint = ParseEndpoint(text);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_EQ(endpoint->ToString(), text);
  }
  EXPECT_EQ(ParseEndpoint("10.9.0.1:50051")->port, 50051);
}

TEST(Endpoint, RefusesBadPortsAndNamesThem) {
  for (const char* port : {"", "0", "65536", "4294967297", "-1", "+1", " 1", "1 ", "1x", "1:2"}) {
    const auto endpoint = ParseEndpoint(absl::string_view(std::string("10.9.0.1:") + port));
    EXPECT_TRUE(absl::IsInvalidArgument(endpoint.status())) << port;
    EXPECT_THAT(endpoint.status().message(), testing::HasSubstr("1..65535")) << port;
  }
  EXPECT_THAT(ParseEndpoint("10.9.0.1").status().message(), testing::HasSubstr("no port"));
  EXPECT_FALSE(ParseEndpoint("10.9.0:80").ok());
}

TEST(Endpoint, OrdersByAddressThenPort) {
  EXPECT_LT(*ParseEndpoint("9.255.255.255:9"), *ParseEndpoint("10.0.0.0:1"));
  EXPECT_LT(*ParseEndpoint("10.0.0.0:9"), *ParseEndpoint("10.0.0.0:10"));
}

}  // namespace
}  // namespace unpin

// SPDX-License-Identifier: Apache-2.0
#include "userspace/admin/paging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace unpin {
namespace {

ConnectionView FromClient(uint32_t address, uint16_t port, const std::string& service = "greeter") {
  ConnectionView view;
  view.connection.key = {{IpAddress{address}, port}, {IpAddress{0x0a090001}, 50051}};
  view.service = service;
  return view;
}

std::vector<uint16_t> Ports(const Page& page) {
  std::vector<uint16_t> ports;
  for (const ConnectionView& view : page.connections)
    ports.push_back(view.connection.key.client.port);
  return ports;
}

PageRequest After(const std::string& token, uint32_t size) {
  v1::ListConnectionsRequest request;
  request.set_page_size(size);
  request.set_page_token(token);
  const auto page = PageRequestFrom(request);
  EXPECT_TRUE(page.ok()) << page.status();
  return *page;
}

TEST(Paging, OrdersByClientAsANumberThenByService) {
  const Page page = TakePage({FromClient(0x0a000010, 1), FromClient(0x0a000009, 2),
                              FromClient(0x0a000009, 1, "z"), FromClient(0x0a000009, 1, "a")},
                             PageRequest());
  ASSERT_EQ(page.connections.size(), 4u);
  EXPECT_EQ(page.connections[0].service, "a");
  EXPECT_EQ(page.connections[1].service, "z");
  EXPECT_EQ(page.connections[2].connection.key.client.port, 2);
  EXPECT_EQ(page.connections[3].connection.key.client.address.bits, 0x0a000010u);
  EXPECT_EQ(page.next_token, "");
}

TEST(Paging, AnExactlyFullPageIsTheLast) {
  EXPECT_EQ(TakePage({FromClient(1, 1), FromClient(1, 2)}, After("", 2)).next_token, "");
  EXPECT_NE(
      TakePage({FromClient(1, 1), FromClient(1, 2), FromClient(1, 3)}, After("", 2)).next_token,
      "");
}

TEST(Paging, ResumesAfterAKeyThatIsGone) {
  const Page first =
      TakePage({FromClient(1, 10), FromClient(1, 20), FromClient(1, 30)}, After("", 2));
  EXPECT_THAT(Ports(first), testing::ElementsAre(10, 20));
  // 20, the last one shown, has closed; 15 and 25 are new.
  const Page second =
      TakePage({FromClient(1, 10), FromClient(1, 15), FromClient(1, 25), FromClient(1, 30)},
               After(first.next_token, 2));
  EXPECT_THAT(Ports(second), testing::ElementsAre(25, 30));
  EXPECT_EQ(second.next_token, "");
}

// Whoever is there all the time is seen exactly once, whatever comes and goes.
TEST(Paging, ChurnNeitherHidesNorRepeats) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::multiset<uint16_t> seen;
    std::string token;
    do {
      std::vector<ConnectionView> connections;
      for (uint16_t port = 2; port <= 100; port += 2) connections.push_back(FromClient(1, port));
      for (uint16_t port = 1; port <= 99; port += 2) {
        if (random() % 2) connections.push_back(FromClient(1, port));
      }
      std::shuffle(connections.begin(), connections.end(), random);
      const Page page = TakePage(std::move(connections), After(token, 1 + random() % 20));
      for (const uint16_t port : Ports(page)) seen.insert(port);
      token = page.next_token;
    } while (!token.empty());
    for (uint16_t port = 2; port <= 100; port += 2) ASSERT_EQ(seen.count(port), 1u) << port;
    for (uint16_t port = 1; port <= 99; port += 2) ASSERT_LE(seen.count(port), 1u) << port;
  }
}

TEST(Paging, RefusesWhatItDidNotGiveOut) {
  v1::ListConnectionsRequest request;
  EXPECT_EQ(PageRequestFrom(request)->size, 1000u);
  request.set_page_size(10000);
  EXPECT_TRUE(PageRequestFrom(request).ok());
  request.set_page_size(10001);
  EXPECT_EQ(PageRequestFrom(request).status(),
            absl::InvalidArgumentError("page_size: 10001 is more than 10000"));
  request.set_page_size(1);
  for (const char* token : {"2", "!", "MTAuMC4wLjE", "Ly8"}) {
    request.set_page_token(token);
    EXPECT_EQ(PageRequestFrom(request).status(),
              absl::InvalidArgumentError("page_token: is not the next_page_token of a response"))
        << token;
  }
}

}  // namespace
}  // namespace unpin

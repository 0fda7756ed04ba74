// SPDX-License-Identifier: Apache-2.0
// What a HTTP probe makes of answers, whole, in pieces, wrong and none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/monitor/listener.h"
#include "tests/monitor/watcher.h"

namespace unpin {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testkit::Listener;
using testkit::TargetAt;
using testkit::Watcher;

// Answers one request with these pieces, each its own segment, and closes.
class OneAnswer {
 public:
  explicit OneAnswer(std::vector<std::string> pieces)
      : thread_([this, pieces] { Serve(pieces); }) {}
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
  }

  uint16_t port() const { return listener_.port(); }
  const std::string& Request() {
    thread_.join();
    return request_;
  }

 private:
  void Serve(const std::vector<std::string>& pieces) {
    const UniqueFd client = listener_.Accept();
    const int on = 1;
    ::setsockopt(client.get(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof(on));
    char bytes[1024];
    while (request_.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::recv(client.get(), bytes, sizeof(bytes), 0);
      if (got <= 0) return;
      request_.append(bytes, static_cast<size_t>(got));
    }
    for (const std::string& piece : pieces) {
      if (::send(client.get(), piece.data(), piece.size(), MSG_NOSIGNAL) < 0) return;
    }
  }

  Listener listener_;
  std::string request_;
  std::thread thread_;
};

HealthTarget HttpTarget(uint16_t port) {
  HealthTarget target = TargetAt(port, HealthSettings::Kind::kHttp);
  target.settings.interval = std::chrono::hours(1);
  target.settings.path = "/healthz";
  return target;
}

ProbeResult ResultOf(std::vector<std::string> answer) {
  OneAnswer server(std::move(answer));
  Watcher watcher({HttpTarget(server.port())});
  return watcher.NextOne();
}

TEST(HttpProbe, AsksForThePath) {
  OneAnswer server({"HTTP/1.1 200 OK\r\n\r\n"});
  Watcher watcher({HttpTarget(server.port())});
  EXPECT_EQ(watcher.NextOne().found, Health::kUp);
  const std::string request = server.Request();
  EXPECT_THAT(request, StartsWith("GET /healthz HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nHost: 127.0.0.1:" + std::to_string(server.port()) + "\r\n"));
}

TEST(HttpProbe, SuccessAndRedirectionAreGood) {
  for (const char* status : {"200 OK", "204 No Content", "301 Moved", "399 Odd"}) {
    EXPECT_EQ(ResultOf({std::string("HTTP/1.1 ") + status + "\r\n\r\n"}).found, Health::kUp)
        << status;
  }
  EXPECT_EQ(ResultOf({"HTTP/1.0 200 OK\r\n\r\n"}).found, Health::kUp);
}

TEST(HttpProbe, OtherAnswersAreOfAServerThatIsThereAndUnwell) {
  for (const char* status : {"404", "500", "503", "100", "000"}) {
    const ProbeResult result = ResultOf({std::string("HTTP/1.1 ") + status + " x\r\n\r\n"});
    EXPECT_EQ(result.found, Health::kUnwell) << status;
    EXPECT_FALSE(result.decisive) << status;
    EXPECT_EQ(result.detail, std::string("GET /healthz answered ") + status);
  }
}

TEST(HttpProbe, AnAnswerMayComeByteByByte) {
  std::vector<std::string> bytes;
  for (const char c : std::string("HTTP/1.1 200 OK\r\n\r\n")) bytes.push_back(std::string(1, c));
  EXPECT_EQ(ResultOf(bytes).found, Health::kUp);
}

TEST(HttpProbe, SomethingElseIsNoAnswer) {
  EXPECT_EQ(ResultOf({"SSH-2.0-OpenSSH_9.2p1\r\n"}).detail, "the answer is not HTTP/1");
  EXPECT_EQ(ResultOf({}).detail, "closed without an answer");
  EXPECT_EQ(ResultOf({"HTTP/1.1"}).detail, "closed without an answer");
}

TEST(HttpProbe, AServerThatAcceptsAndDoesNotAnswerIsSilent) {
  Listener listener;
  HealthTarget target = HttpTarget(listener.port());
  target.settings.timeout = std::chrono::milliseconds(60);
  Watcher watcher({target});
  const ProbeResult result = watcher.NextOne();
  EXPECT_EQ(result.found, Health::kSilent);
  EXPECT_EQ(result.detail, "no answer within 60ms");
}

}  // namespace
}  // namespace unpin

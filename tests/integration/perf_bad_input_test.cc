// What can go wrong around septet perf: servers, models, data, files. Each is said in a line that
// names it, and what was measured is kept.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "integration/perf_fixture.h"
#include "os/endpoint.h"
#include "support/simulated_grpc_server.h"
#include "support/simulated_server.h"

namespace septet {
namespace {

using test::PerfTest;
using testing::HasSubstr;
using testing::StartsWith;

// Says the same to everybody who connects, and no more.
class OneLineServer {
 public:
  explicit OneLineServer(std::string line)
      : line_(std::move(line)), listener_(*os::listen_on(os::Endpoint{"127.0.0.1", 0, ""})) {
    thread_ = std::thread([this] {
      while (!stopped_) {
        pollfd waiting{listener_.get(), POLLIN, 0};
        poll(&waiting, 1, 20);
        os::UniqueFd client = os::accept_from(listener_.get());
        if (client.valid()) {
          [[maybe_unused]] const auto sent =
              ::send(client.get(), line_.data(), line_.size(), MSG_NOSIGNAL);
          // Closed for good later: what was not read would reset the connection.
          shutdown(client.get(), SHUT_WR);
          clients_.push_back(std::move(client));
        }
      }
    });
  }
  ~OneLineServer() {
    stopped_ = true;
    thread_.join();
  }
  OneLineServer(const OneLineServer&) = delete;
  OneLineServer& operator=(const OneLineServer&) = delete;

  std::string address() const { return os::local_endpoint(listener_.get()).text(); }

 private:
  std::string line_;
  os::UniqueFd listener_;
  std::vector<os::UniqueFd> clients_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

class PerfBadInputTest : public PerfTest {
 protected:
  // Runs it; it must end with the code and one line that says all of these.
  void expect_refused(const std::vector<std::string>& words, int code,
                      const std::vector<std::string>& says) {
    EXPECT_EQ(run(words), code) << output_;
    EXPECT_EQ(split(trim(output_), '\n').size(), 1U) << output_;
    EXPECT_THAT(output_, StartsWith("septet: "));
    for (const std::string& text : says) {
      EXPECT_THAT(output_, HasSubstr(text));
    }
  }
  std::string written(const std::string& name, const std::string& text) {
    std::ofstream(file(name)) << text;
    return file(name);
  }
  // A server that fails from this request on.
  static test::ServerBehaviour failing_from(std::uint64_t first, test::Reply reply) {
    test::ServerBehaviour behaviour;
    behaviour.service_time = [](auto, auto&) { return milliseconds(1); };
    behaviour.reply = [first, reply](std::uint64_t index) {
      return index >= first ? reply : test::Reply::kAnswer;
    };
    return behaviour;
  }
};

TEST_F(PerfBadInputTest, AServerOfAnotherProtocolIsNamed) {
  const test::SimulatedServer http({});
  const test::SimulatedGrpcServer grpc;

  expect_refused({"-i", "grpc", "-u", http.endpoint().text()}, 1,
                 {http.endpoint().text(), "gRPC port"});
  expect_refused({"-u", grpc.endpoint().text()}, 1, {grpc.endpoint().text(), "v2 server"});
}

TEST_F(PerfBadInputTest, AServerThatHalfSpeaksIsNamed) {
  const OneLineServer ssh("SSH-2.0-OpenSSH_9.2\r\n");
  const OneLineServer half("HTTP/1.1 200 OK\r\nContent-Le");
  const OneLineServer not_json("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");

  for (const OneLineServer* server : {&ssh, &half, &not_json}) {
    expect_refused({"-u", server->address()}, 1, {server->address(), "v2 server"});
    expect_refused({"-u", server->address(), "-i", "grpc"}, 1, {server->address(), "gRPC port"});
  }
}

TEST_F(PerfBadInputTest, NamesAndPortsThatCannotBeAreNamed) {
  expect_refused({"-u", "127.0.0.1:99999"}, 2, {"127.0.0.1:99999"});
  expect_refused({"-u", "no-such-host.invalid:8000"}, 6, {"no-such-host.invalid"});
  expect_refused({"-u", "unix:" + file("nobody")}, 3, {"nobody", "septet serve"});
}

TEST_F(PerfBadInputTest, AModelThatIsNotThereIsNotFound) {
  test::ServerBehaviour behaviour;
  behaviour.model_exists = false;
  const test::SimulatedServer server(behaviour);

  expect_refused({"-u", server.endpoint().text()}, 6, {"unknown model"});
}

// Another version with another input takes the model's place: from then on every request is wrong.
TEST_F(PerfBadInputTest, AModelThatChangesUnderTheRunLeavesMarkedRows) {
  const test::SimulatedServer server(failing_from(300, test::Reply::kReject));

  const int code = run({"-u", server.endpoint().text(), "--concurrency-range", "1:3", "-p", "100",
                        "-s", "100000", "-r", "3", "-f", file("perf.csv")});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_EQ(lines("perf.csv").size(), 4U);
  EXPECT_THAT(output_, HasSubstr(" rejected)"));
  EXPECT_THAT(output_, HasSubstr("simulated refusal"));
}

TEST_F(PerfBadInputTest, AServerThatRefusesEverythingIsQuoted) {
  const test::SimulatedServer server(failing_from(0, test::Reply::kRefuse));

  const int code = run({"-u", server.endpoint().text(), "-p", "50", "-r", "3"});

  EXPECT_EQ(code, 1);
  EXPECT_THAT(output_, HasSubstr("no request was answered: "));
  EXPECT_THAT(output_, HasSubstr("answered 503: simulated refusal"));
}

TEST_F(PerfBadInputTest, ResetsAndHalfAnswersAreCountedByKind) {
  test::ServerBehaviour behaviour;
  behaviour.reply = [](std::uint64_t index) {
    return index % 10 == 3   ? test::Reply::kReset
           : index % 10 == 6 ? test::Reply::kHalf
           : index % 10 == 9 ? test::Reply::kGarbage
                             : test::Reply::kAnswer;
  };
  const test::SimulatedServer server(behaviour);

  const int code =
      run({"-u", server.endpoint().text(), "--request-count", "50", "-f", file("perf.csv")});

  EXPECT_EQ(code, 0) << output_;
  EXPECT_EQ(lines("perf.csv").size(), 2U);
  EXPECT_THAT(output_, HasSubstr(" reset, "));
  EXPECT_THAT(output_, HasSubstr(" protocol)"));
}

TEST_F(PerfBadInputTest, AServerThatDiesLeavesTheRowsSoFar) {
  auto server = std::make_unique<test::SimulatedServer>(failing_from(UINT64_MAX, {}));
  test::SeptetRun program = start({"-u", server->endpoint().text(), "--concurrency-range", "1:3",
                                   "-p", "100", "-s", "100000", "-r", "3", "-f", file("perf.csv")});
  while (lines("perf.csv").size() < 2) {
    ASSERT_FALSE(program.process().poll_exit().has_value()) << program.output();
    std::this_thread::yield();
  }

  server.reset();
  const std::optional<os::ExitStatus> status = program.wait(seconds(60));

  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 0) << program.output();
  EXPECT_EQ(lines("perf.csv").size(), 4U);
  EXPECT_THAT(program.output(), HasSubstr(" connect"));
}

TEST_F(PerfBadInputTest, MalformedInputDataIsNamedWithItsFile) {
  const test::SimulatedServer server({});
  const std::string url = server.endpoint().text();

  expect_refused({"-u", url, "--input-data", written("broken.json", R"({"data":[)")}, 2,
                 {"broken.json"});
  expect_refused({"-u", url, "--input-data", written("other.json", R"({"data":[{"NO":[1]}]})")}, 2,
                 {"other.json", "IN"});
  expect_refused({"-u", url, "--input-data", written("short.json", R"({"data":[{"IN":[1,2]}]})")},
                 2, {"short.json", "IN"});
  expect_refused({"-u", url, "--input-data", written("words.json", R"({"data":[{"IN":["a"]}]})")},
                 2, {"words.json", "IN"});
  expect_refused({"-u", url, "--input-data", file("nowhere.json")}, 6, {"nowhere.json"});
  expect_refused({"-u", url, "--request-intervals", written("gaps", "12\nsoon\n")}, 2, {"line 2"});
  expect_refused({"-u", url, "--request-trace", written("trace", "when\nnow\n")}, 2, {});
}

TEST_F(PerfBadInputTest, ImpossibleShapesAreNamed) {
  test::ServerBehaviour behaviour;
  behaviour.input_shape = "[-1,4]";
  const test::SimulatedServer server(behaviour);
  const std::string url = server.endpoint().text();

  expect_refused({"-u", url}, 2, {"--shape", "IN"});
  expect_refused({"-u", url, "--shape", "IN:2,5"}, 2, {"IN"});
  expect_refused({"-u", url, "--shape", "OTHER:2,4"}, 2, {"OTHER"});
  expect_refused({"-u", url, "--shape", "IN:99999999999,4"}, 2, {"IN"});
}

TEST_F(PerfBadInputTest, AFileThatExistsIsReplacedAndAFolderIsNoFile) {
  const test::SimulatedServer server({});
  const std::string url = server.endpoint().text();
  const std::string old = written("perf.csv", "an older measurement\n");

  EXPECT_EQ(run({"-u", url, "--request-count", "10", "-f", old}), 0) << output_;
  EXPECT_THAT(test::read_text(old), StartsWith("Concurrency,"));
  expect_refused({"-u", url, "-f", folder_.path()}, 1, {folder_.path()});
}

}  // namespace
}  // namespace septet

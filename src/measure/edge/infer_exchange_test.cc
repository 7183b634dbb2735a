#include "measure/edge/infer_exchange.h"

#include <gmock/gmock.h>

#include <set>

#include "support/simulated_server.h"

namespace septet::measure {
namespace {

using inference::Datatype;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

inference::InferRequest small_request(std::size_t number) {
  inference::InferRequest request;
  request.model_name = "simple";
  request.id = std::to_string(number);
  inference::InputTensor& input = request.inputs.emplace_back();
  input.name = "INPUT0";
  input.datatype = Datatype::kInt8;
  input.shape = {1, 16};
  input.data = inference::own_text(std::string(16, '\1'));
  return request;
}

// Collects the numbers of the answered requests.
struct Collected {
  std::vector<std::size_t> numbers;
  Result<Ok> outcome = Ok{};
};

Collected exchange_with(const os::Endpoint& endpoint, std::size_t requests, Sending sending,
                        Duration timeout = seconds(20)) {
  Collected collected;
  InferExchange exchange;
  exchange.endpoint = endpoint;
  exchange.headers = {{"X-Test", "yes"}};
  exchange.requests = requests;
  exchange.sending = sending;
  exchange.timeout = timeout;
  exchange.make_request = [](std::size_t number) { return small_request(number); };
  exchange.on_response = [&](std::size_t arrival, std::size_t number,
                             const inference::InferResponse& response) -> Result<Ok> {
    EXPECT_EQ(arrival, collected.numbers.size());
    EXPECT_FALSE(response.outputs.empty());
    collected.numbers.push_back(number);
    return Ok{};
  };
  collected.outcome = run_infer_exchange(exchange);
  return collected;
}

TEST(InferExchange, SendsOneAfterTheOther) {
  test::SimulatedServer server({.replicas = 4});

  const Collected collected = exchange_with(server.endpoint(), 5, Sending::kOneByOne);

  ASSERT_TRUE(collected.outcome.ok()) << collected.outcome.error().text();
  EXPECT_THAT(collected.numbers, testing::ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(server.most_at_once(), 1U);
}

TEST(InferExchange, KeepsManyInFlightTogether) {
  test::ServerBehaviour behaviour;
  behaviour.replicas = 4;
  behaviour.service_time = [](auto, auto&) { return milliseconds(20); };
  test::SimulatedServer server(behaviour);

  const Collected collected = exchange_with(server.endpoint(), 8, Sending::kTogether);

  ASSERT_TRUE(collected.outcome.ok()) << collected.outcome.error().text();
  EXPECT_THAT(collected.numbers, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_GT(server.most_at_once(), 1U);
}

TEST(InferExchange, SendsTheTensorBehindTheJsonAndTheGivenHeaders) {
  test::SimulatedServer server({});

  const Collected collected = exchange_with(server.endpoint(), 1, Sending::kOneByOne);

  ASSERT_TRUE(collected.outcome.ok()) << collected.outcome.error().text();
  EXPECT_THAT(server.last_request(), HasSubstr("X-Test: yes"));
  EXPECT_THAT(server.last_request(), HasSubstr("\"binary_data_size\":16"));
  EXPECT_THAT(server.last_request(), HasSubstr(std::string(16, '\1')));
}

TEST(InferExchange, EndsAtTheFirstErrorWithTheServersWords) {
  test::ServerBehaviour behaviour;
  behaviour.reply = [](std::uint64_t index) {
    return index == 2 ? test::Reply::kReject : test::Reply::kAnswer;
  };
  test::SimulatedServer server(behaviour);

  const Collected collected = exchange_with(server.endpoint(), 5, Sending::kOneByOne);

  ASSERT_FALSE(collected.outcome.ok());
  EXPECT_EQ(collected.outcome.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(collected.outcome.error().message,
              HasSubstr("failed sending synchronous infer request: "));
  EXPECT_EQ(collected.numbers.size(), 2U);
}

TEST(InferExchange, TellsHalfAnswersFromSilence) {
  for (const test::Reply reply : {test::Reply::kHalf, test::Reply::kShortBody, test::Reply::kReset,
                                  test::Reply::kGarbage, test::Reply::kSilence}) {
    test::ServerBehaviour behaviour;
    behaviour.reply = [reply](auto) { return reply; };
    test::SimulatedServer server(behaviour);

    const Collected collected =
        exchange_with(server.endpoint(), 1, Sending::kTogether, milliseconds(200));

    ASSERT_FALSE(collected.outcome.ok());
    EXPECT_EQ(collected.outcome.error().message.find("no answer within") != std::string::npos,
              reply == test::Reply::kSilence)
        << collected.outcome.error().message;
  }
}

TEST(InferExchange, SaysHowToStartAServerWhenNobodyAnswers) {
  os::Endpoint nobody;
  nobody.unix_path = "/nonexistent/septet.sock";

  const Collected collected = exchange_with(nobody, 1, Sending::kOneByOne);

  ASSERT_FALSE(collected.outcome.ok());
  EXPECT_EQ(collected.outcome.error().kind, ErrorKind::kPrecondition);
  EXPECT_THAT(collected.outcome.error().hint, HasSubstr("septet serve"));
}

}  // namespace
}  // namespace septet::measure

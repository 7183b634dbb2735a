#include "measure/edge/request_feed.h"

#include <gmock/gmock.h>

#include <cstring>

#include "measure/infer_input.h"

namespace septet::measure {
namespace {

using testing::HasSubstr;

inference::InferRequest request(std::int32_t value) {
  inference::InferRequest request;
  inference::InputTensor input;
  input.name = "IN";
  input.datatype = inference::Datatype::kInt32;
  input.shape = {1};
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  input.data = inference::own_bytes(std::move(bytes));
  request.inputs.push_back(std::move(input));
  return request;
}

RequestFeed::Settings settings() {
  RequestFeed::Settings settings;
  settings.endpoints = {{"127.0.0.1", 1, ""}, {"127.0.0.2", 2, ""}};
  settings.path = "/v2/models/m/infer";
  settings.headers = {{"X-Team", "blue"}};
  return settings;
}

std::string text(const ExchangeClient::Pieces& pieces) {
  return std::string(pieces[0]) + std::string(pieces[1]) + std::string(pieces[2]);
}

TEST(RequestFeed, HeadNamesHostLengthsAndHeaders) {
  RequestFeed feed(settings(), {{{request(7)}}});
  RequestFeed::Slot slot;
  slot.endpoint = 1;

  const ExchangeClient::Pieces pieces = feed.next(slot);

  EXPECT_THAT(pieces[0], testing::StartsWith("POST /v2/models/m/infer HTTP/1.1\r\n"
                                             "Host: 127.0.0.2:2\r\nX-Team: blue\r\n"));
  EXPECT_THAT(pieces[0],
              HasSubstr("Content-Length: " + std::to_string(pieces[1].size()) + "\r\n\r\n"));
  EXPECT_THAT(pieces[0], HasSubstr("Inference-Header-Content-Length: " +
                                   std::to_string(pieces[1].size() - 4) + "\r\n"));
}

TEST(RequestFeed, JsonInputsAreTheWholeBodyAndAreAnnouncedAsJson) {
  RequestFeed::Settings json = settings();
  json.json_inputs = true;
  RequestFeed feed(json, {{{request(7)}}});
  RequestFeed::Slot slot;

  const ExchangeClient::Pieces pieces = feed.next(slot);

  EXPECT_EQ(pieces[1],
            R"({"id":"","inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[7]}]})");
  EXPECT_THAT(pieces[0], HasSubstr("Content-Type: application/json\r\n"));
  EXPECT_THAT(pieces[0], testing::Not(HasSubstr("Inference-Header-Content-Length")));
}

TEST(RequestFeed, AStepOfASequenceIsJsonToo) {
  RequestFeed::Settings json = settings();
  json.json_inputs = true;
  json.sequences = true;
  RequestFeed feed(json, {{{request(7)}}});
  RequestFeed::Slot slot;

  const ExchangeClient::Pieces pieces = feed.next(slot);

  EXPECT_THAT(pieces[1], HasSubstr(R"("sequence_start":true)"));
  EXPECT_THAT(pieces[1], testing::EndsWith(R"("data":[7]}]})"));
  EXPECT_EQ(pieces[2], "");
}

TEST(RequestFeed, EntriesAreUsedInTurn) {
  RequestFeed feed(settings(), {{{request(1), request(2)}, {request(3)}}});
  RequestFeed::Slot slot;

  std::vector<char> last_bytes;
  for (int i = 0; i < 4; ++i) {
    const std::string_view body = feed.next(slot)[1];
    last_bytes.push_back(body[body.size() - 4]);
  }

  EXPECT_THAT(last_bytes, testing::ElementsAre(1, 2, 3, 1));
}

TEST(RequestFeed, ASequenceStartsAndEndsAndHasItsNumber) {
  RequestFeed::Settings sequences = settings();
  sequences.sequences = true;
  sequences.sequence.length = 3;
  sequences.sequence.length_variation_percent = 0;
  RequestFeed feed(sequences, {{{request(1)}}});
  RequestFeed::Slot slot;

  const std::string first = text(feed.next(slot));
  EXPECT_FALSE(slot.ends_sequence);
  const std::string second = text(feed.next(slot));
  const std::string third = text(feed.next(slot));
  EXPECT_TRUE(slot.ends_sequence);
  const std::string fourth = text(feed.next(slot));

  EXPECT_THAT(first, HasSubstr(R"("id":"0",)"));
  EXPECT_THAT(
      first,
      HasSubstr(R"("parameters":{"sequence_end":false,"sequence_id":1,"sequence_start":true})"));
  EXPECT_THAT(second, HasSubstr(R"("sequence_end":false,"sequence_id":1,"sequence_start":false)"));
  EXPECT_THAT(third, HasSubstr(R"("sequence_end":true,"sequence_id":1,"sequence_start":false)"));
  EXPECT_THAT(fourth, HasSubstr(R"("sequence_end":false,"sequence_id":2,"sequence_start":true)"));
}

TEST(RequestFeed, TwoSlotsPlayTwoSequences) {
  RequestFeed::Settings sequences = settings();
  sequences.sequences = true;
  RequestFeed feed(sequences, {{{request(1), request(2)}, {request(5), request(6)}}});
  RequestFeed::Slot a;
  RequestFeed::Slot b;

  feed.next(a);
  feed.next(b);
  feed.next(a);

  EXPECT_EQ(a.sequence_id, 1U);
  EXPECT_EQ(b.sequence_id, 2U);
  EXPECT_TRUE(a.ends_sequence);  // its stream has two steps
  EXPECT_EQ(b.stream, 1U);
}

TEST(RequestFeed, AnAbandonedSequenceIsNotGoneOnWith) {
  RequestFeed::Settings sequences = settings();
  sequences.sequences = true;
  RequestFeed feed(sequences, {{{request(1)}}});
  RequestFeed::Slot slot;
  feed.next(slot);

  RequestFeed::abandon(slot);

  EXPECT_THAT(text(feed.next(slot)), HasSubstr(R"("sequence_id":2,"sequence_start":true)"));
}

TEST(RequestFeed, SequenceNumbersStayWithinTheirRange) {
  RequestFeed::Settings sequences = settings();
  sequences.sequences = true;
  sequences.sequence = {1, 0, 8, 9};
  RequestFeed feed(sequences, {{{request(1)}}});
  RequestFeed::Slot slot;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    feed.next(slot);
    ids.push_back(slot.sequence_id);
  }

  EXPECT_THAT(ids, testing::ElementsAre(8, 9, 8, 9));
}

TEST(RequestFeed, LengthsOfMadeUpSequencesVaryWithinTheirPercentage) {
  RequestFeed::Settings sequences = settings();
  sequences.sequences = true;
  RequestFeed feed(sequences, {{{request(1)}}});
  RequestFeed::Slot slot;
  std::vector<int> lengths = {0};
  while (lengths.size() < 200) {
    feed.next(slot);
    ++lengths.back();
    if (slot.ends_sequence) {
      lengths.push_back(0);
    }
  }
  lengths.pop_back();

  EXPECT_EQ(*std::min_element(lengths.begin(), lengths.end()), 16);
  EXPECT_EQ(*std::max_element(lengths.begin(), lengths.end()), 24);
}

}  // namespace
}  // namespace septet::measure

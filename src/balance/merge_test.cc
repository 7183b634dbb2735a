#include "balance/merge.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "balance/metrics_text.h"

namespace septet::balance {
namespace {

using Json = nlohmann::json;

ReplicaReply ok(std::string body) { return {"r", 200, "application/json", std::move(body)}; }

constexpr std::string_view kStats =
    R"({"model_stats":[{"name":"m","version":"1","last_inference":%L,"inference_count":%N,)"
    R"("execution_count":%N,"inference_stats":{"success":{"count":%N,"ns":10},"fail":{"count":0,)"
    R"("ns":0}},"batch_stats":[{"batch_size":%B,"compute_infer":{"count":%N,"ns":7}}]}]})";

std::string stats(const std::string& count, const std::string& last, const std::string& batch) {
  std::string text(kStats);
  const auto put = [&text](const std::string& what, const std::string& value) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what)) {
      text.replace(at, what.size(), value);
    }
  };
  put("%N", count);
  put("%L", last);
  put("%B", batch);
  return text;
}

TEST(MergeReplies, SumsStatisticsPerModel) {
  const MergedReply merged = merge_replies(
      RouteKind::kStatistics,
      {ok(stats("3", "50", "1")), ok(stats("4", "40", "1")), ok(stats("5", "60", "2"))});

  const Json model = Json::parse(merged.body)["model_stats"][0];
  EXPECT_EQ(merged.status, 200U);
  EXPECT_EQ(model["inference_count"], 12);
  EXPECT_EQ(model["last_inference"], 60);
  EXPECT_EQ(model["inference_stats"]["success"]["count"], 12);
  EXPECT_EQ(model["inference_stats"]["success"]["ns"], 30);
  ASSERT_EQ(model["batch_stats"].size(), 2U);
  EXPECT_EQ(model["batch_stats"][0]["batch_size"], 1);
  EXPECT_EQ(model["batch_stats"][0]["compute_infer"]["count"], 7);
  EXPECT_EQ(model["batch_stats"][1]["compute_infer"]["count"], 5);
}

TEST(MergeReplies, KeepsAnErrorWhenNoReplicaSucceeds) {
  const ReplicaReply unknown{"r", 404, "application/json", R"({"error":"no such model"})"};

  const MergedReply merged = merge_replies(RouteKind::kStatistics, {unknown, unknown});

  EXPECT_EQ(merged.status, 404U);
  EXPECT_EQ(merged.body, unknown.body);
}

TEST(MergeReplies, UnitesTheRepositoryIndex) {
  const MergedReply merged =
      merge_replies(RouteKind::kRepositoryIndex,
                    {ok(R"([{"name":"a","version":"1","state":"LOADING"},{"name":"b"}])"),
                     ok(R"([{"name":"a","version":"1","state":"READY"},{"name":"c"}])")});

  const Json index = Json::parse(merged.body);
  ASSERT_EQ(index.size(), 3U);
  EXPECT_EQ(index[0]["state"], "READY");
}

TEST(MergeReplies, EveryReplicaHasToSucceed) {
  const ReplicaReply bad{"r", 400, "application/json", R"({"error":"x"})"};
  EXPECT_EQ(merge_replies(RouteKind::kEveryReplica, {ok(""), ok("")}).status, 200U);
  EXPECT_EQ(merge_replies(RouteKind::kEveryReplica, {ok(""), bad}).status, 400U);
  EXPECT_EQ(merge_replies(RouteKind::kEveryReplica, {}).status, 503U);
}

TEST(MergeReplies, AnyReplicaIsEnough) {
  const ReplicaReply bad{"r", 400, "application/json", R"({"error":"x"})"};
  EXPECT_EQ(merge_replies(RouteKind::kAnyReplica, {bad, ok("{}")}).status, 200U);
  EXPECT_EQ(merge_replies(RouteKind::kAnyReplica, {bad, bad}).status, 400U);
}

TEST(MergeReplies, GarbageCountsAsNoReply) {
  EXPECT_EQ(
      merge_replies(RouteKind::kStatistics, {ok("{\"model_stats\":"), ok(stats("1", "1", "1"))})
          .status,
      200U);
  EXPECT_EQ(merge_replies(RouteKind::kStatistics, {ok("nonsense")}).status, 503U);
}

// Found by thinking like a fuzzer: each of these once threw out of the merge.
TEST(MergeReplies, SurvivesStatisticsOfTheWrongShape) {
  const auto odd = [](std::string_view batches) {
    return ok(R"({"model_stats":[{"name":"m","last_inference":"x","batch_stats":)" +
              std::string(batches) + "}]}");
  };
  std::string deep;
  for (int i = 0; i < 100'000; ++i) {
    deep += "{\"a\":";
  }
  deep += "1" + std::string(100'000, '}');

  for (const std::string_view batches :
       {R"([7,{"batch_size":"x"}])", R"([{"batch_size":-1},[]])", R"({"batch_size":1})", "3"}) {
    EXPECT_EQ(
        merge_replies(RouteKind::kStatistics, {odd(batches), odd(batches), odd("[{}]")}).status,
        200U)
        << batches;
  }
  EXPECT_EQ(merge_replies(RouteKind::kStatistics, {odd(deep), odd(deep)}).status, 200U);
}

TEST(MetricsText, AddsCountersAndAveragesShares) {
  MetricsText text;
  for (const char* const share : {"0.2", "0.6"}) {
    text.add(std::string("# HELP nv_inference_count n\n# TYPE nv_inference_count counter\n"
                         "nv_inference_count{model=\"m\",version=\"1\"} 5\n"
                         "# TYPE nv_gpu_utilization gauge\nnv_gpu_utilization{gpu_uuid=\"G\"} ") +
             share + "\n");
  }

  const std::string merged = text.text();

  EXPECT_NE(merged.find("nv_inference_count{model=\"m\",version=\"1\"} 10\n"), std::string::npos);
  EXPECT_NE(merged.find("nv_gpu_utilization{gpu_uuid=\"G\"} 0.4\n"), std::string::npos);
  EXPECT_NE(merged.find("# TYPE nv_inference_count counter\n"), std::string::npos);
}

TEST(MetricsText, KeepsAHistogramTogether) {
  MetricsText text;
  text.add(
      "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n"
      "garbage without value\n# TYPE g gauge\ng 1\n");

  EXPECT_EQ(text.text(),
            "# TYPE g gauge\ng 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\n"
            "h_bucket{le=\"+Inf\"} 2\nh_sum 3\nh_count 2\n");
}

}  // namespace
}  // namespace septet::balance

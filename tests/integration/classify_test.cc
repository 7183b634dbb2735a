// septet classify against a running septet serve: what a person sees, over every protocol.

#include <gmock/gmock.h>

#include "integration/septet_run.h"

namespace septet::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A server of the digits model on Unix sockets.
class Classify : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cannot_serve("digits")) {
      GTEST_SKIP() << *why;
    }
    server_.emplace(folder_, "serve",
                    std::vector<std::string>{"serve", "--model-repository", repository(), "--model",
                                             "digits", "--listen", "unix:" + folder_ / "http",
                                             "--grpc-listen", "unix:" + folder_ / "grpc"});
    ASSERT_TRUE(eventually(seconds(60), [this] {
      return server_->output().find("septet: ready\n") != std::string::npos;
    })) << server_->output();
  }

  static std::string repository() { return std::string(SEPTET_SOURCE_DIR) + "/models"; }
  static std::string picture(const std::string& name) {
    return repository() + "/digits/images/" + name;
  }

  struct Outcome {
    int code = -1;
    std::string output;
  };

  Outcome classify(const std::string& source, std::vector<std::string> words) {
    words.insert(words.begin(), {"classify", source, "-m", "digits"});
    SeptetRun run(folder_, "classify", words);
    const auto status = run.wait(seconds(60));
    return {status ? status->code : -1, run.output()};
  }

  std::vector<std::string> by_http(std::vector<std::string> words) const {
    words.insert(words.end(), {"-u", "unix:" + folder_ / "http"});
    return words;
  }
  std::vector<std::string> by_grpc(std::vector<std::string> words) const {
    words.insert(words.end(), {"-i", "grpc", "-u", "unix:" + folder_ / "grpc"});
    return words;
  }

  TestFolder folder_;
  std::optional<SeptetRun> server_;
};

TEST_F(Classify, ReadsAHandwrittenSevenFirst) {
  const Outcome seen = classify(picture("7.png"), by_http({"-c", "3"}));

  EXPECT_EQ(seen.code, 0);
  EXPECT_THAT(seen.output,
              StartsWith("Request 0, batch size 1\nImage '" + picture("7.png") + "':\n    0.99"));
  EXPECT_THAT(seen.output, HasSubstr("(7) = 7\n"));
}

TEST_F(Classify, SaysTheSameOverHttpGrpcAndAStream) {
  const std::string folder = picture("");
  const Outcome http = classify(folder, by_http({"-c", "2", "-b", "4"}));

  EXPECT_EQ(http.code, 0);
  EXPECT_THAT(http.output, HasSubstr("Request 2, batch size 4"));
  EXPECT_EQ(classify(folder, by_grpc({"-c", "2", "-b", "4"})).output, http.output);
  EXPECT_EQ(classify(folder, by_grpc({"-c", "2", "-b", "4", "-a", "--streaming"})).output,
            http.output);
}

TEST_F(Classify, SendsAllAtOnceByBothProtocols) {
  for (const auto& words : {by_http({"-a"}), by_grpc({"-a"})}) {
    const Outcome seen = classify(picture(""), words);

    EXPECT_EQ(seen.code, 0) << seen.output;
    for (int digit = 0; digit < 10; ++digit) {
      EXPECT_THAT(seen.output, HasSubstr("(" + std::to_string(digit) + ") = "));
      EXPECT_THAT(seen.output, HasSubstr("Request " + std::to_string(digit) + ","));
    }
  }
}

TEST_F(Classify, SaysWhatIsWrongInOneLine) {
  const Outcome unknown = classify(picture("7.png"), by_http({"-x", "9"}));
  const Outcome by_rpc = classify(picture("7.png"), by_grpc({"-x", "9"}));
  const Outcome no_picture = classify(repository() + "/README.md", by_grpc({}));
  const Outcome nobody = classify(picture("7.png"), {"-u", "unix:" + folder_ / "nobody"});
  const Outcome no_rpc =
      classify(picture("7.png"), {"-i", "grpc", "-u", "unix:" + folder_ / "nobody"});
  const Outcome stream = classify(picture("7.png"), by_http({"--streaming"}));

  EXPECT_EQ(unknown.code, 6) << unknown.output;
  EXPECT_EQ(by_rpc.code, 6) << by_rpc.output;
  EXPECT_EQ(no_picture.code, 1);
  EXPECT_THAT(no_picture.output, HasSubstr("unable to decode image"));
  EXPECT_EQ(nobody.code, 3);
  EXPECT_THAT(nobody.output, HasSubstr("start one with: septet serve"));
  EXPECT_EQ(no_rpc.code, 3) << no_rpc.output;
  EXPECT_EQ(stream.code, 2);
}

}  // namespace
}  // namespace septet::test

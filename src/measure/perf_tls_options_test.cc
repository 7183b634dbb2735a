#include "measure/perf_tls_options.h"

#include <gmock/gmock.h>

namespace septet::measure {
namespace {

using testing::HasSubstr;

constexpr bool kHttp = false;
constexpr bool kGrpc = true;

TEST(PerfTlsOptions, PlainUrlsWithoutWordsAreNotEncrypted) {
  const auto http = tls_options_of({}, {"localhost:8000", "http://other:8000"}, kHttp);
  const auto grpc = tls_options_of({}, {}, kGrpc);

  ASSERT_TRUE(http.ok() && grpc.ok());
  EXPECT_FALSE(http->has_value());
  EXPECT_FALSE(grpc->has_value());
}

TEST(PerfTlsOptions, AnHttpsUrlEncryptsAndVerifiesBoth) {
  const auto options = tls_options_of({}, {"HTTPS://host:8443"}, kHttp);

  ASSERT_TRUE(options.ok() && options->has_value());
  EXPECT_TRUE((*options)->verify_peer);
  EXPECT_TRUE((*options)->verify_host);
  EXPECT_EQ(without_https("HTTPS://host:8443"), "host:8443");
}

TEST(PerfTlsOptions, EveryHttpsWordIsTaken) {
  TlsWords words;
  words.https_verify_peer = 0;
  words.https_verify_host = 0;
  words.https_ca_certificates_file = "ca.pem";
  words.https_client_certificate_file = "client.der";
  words.https_client_certificate_type = "DER";
  words.https_private_key_file = "key.pem";
  words.https_private_key_type = "PEM";

  const auto options = tls_options_of(words, {"https://host"}, kHttp);

  ASSERT_TRUE(options.ok() && options->has_value());
  EXPECT_FALSE((*options)->verify_peer);
  EXPECT_FALSE((*options)->verify_host);
  EXPECT_EQ((*options)->authorities_file, "ca.pem");
  EXPECT_EQ((*options)->certificate_file, "client.der");
  EXPECT_EQ((*options)->certificate_type, TlsFileType::kDer);
  EXPECT_EQ((*options)->key_file, "key.pem");
  EXPECT_EQ((*options)->key_type, TlsFileType::kPem);
}

TEST(PerfTlsOptions, EveryGrpcWordIsTaken) {
  TlsWords words;
  words.grpc_use_ssl = true;
  words.grpc_root_certifications_file = "ca.pem";
  words.grpc_private_key_file = "key.pem";
  words.grpc_certificate_chain_file = "chain.pem";

  const auto options = tls_options_of(words, {"host:8001"}, kGrpc);

  ASSERT_TRUE(options.ok() && options->has_value());
  EXPECT_TRUE((*options)->verify_peer);
  EXPECT_EQ((*options)->authorities_file, "ca.pem");
  EXPECT_EQ((*options)->certificate_file, "chain.pem");
  EXPECT_EQ((*options)->key_file, "key.pem");
}

// Words that would have no effect, or make no sense, are refused by their name.
TEST(PerfTlsOptions, WordsWithoutEffectAreRefused) {
  struct Case {
    TlsWords words;
    std::vector<std::string> urls;
    bool grpc;
    const char* says;
  };
  const auto with = [](auto set) {
    TlsWords words;
    set(words);
    return words;
  };
  const std::vector<Case> cases = {
      {with([](auto& w) { w.https_verify_peer = 0; }), {"host"}, kHttp, "--ssl-https-verify-peer"},
      {with([](auto& w) { w.https_verify_host = 0; }), {"host"}, kGrpc, "--ssl-https-verify-host"},
      {with([](auto& w) { w.grpc_use_ssl = true; }), {"https://h"}, kHttp, "--ssl-grpc-use-ssl"},
      {with([](auto& w) { w.grpc_root_certifications_file = "f"; }),
       {"host"},
       kGrpc,
       "--ssl-grpc-root-certifications-file"},
      {with([](auto& w) {
         w.grpc_use_ssl = true;
         w.grpc_private_key_file = "f";
       }),
       {"host"},
       kGrpc,
       "--ssl-grpc-certificate-chain-file"},
      {with([](auto& w) { w.https_private_key_file = "f"; }), {"https://h"}, kHttp, "certificate"},
      {with([](auto& w) { w.https_verify_peer = 2; }), {"https://h"}, kHttp, "neither 0 nor 1"},
      {with([](auto& w) { w.https_verify_host = 3; }), {"https://h"}, kHttp, "none of 0, 1 and 2"},
      {with([](auto& w) {
         w.https_client_certificate_file = "f";
         w.https_client_certificate_type = "P12";
       }),
       {"https://h"},
       kHttp,
       "neither PEM nor DER"},
      {{}, {"https://h"}, kGrpc, "--ssl-grpc-use-ssl"},
      {{}, {"https://h", "other"}, kHttp, "two runs"},
  };

  for (const Case& wrong : cases) {
    const auto options = tls_options_of(wrong.words, wrong.urls, wrong.grpc);

    ASSERT_FALSE(options.ok()) << wrong.says;
    EXPECT_EQ(options.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(options.error().text(), HasSubstr(wrong.says));
  }
}

}  // namespace
}  // namespace septet::measure

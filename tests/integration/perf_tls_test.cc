// septet perf through TLS: perf_analyzer's options, against servers that hold it to them.
#include <gmock/gmock.h>

#include <fstream>

#include "integration/perf_fixture.h"
#include "support/certificates.h"
#include "support/simulated_grpc_server.h"
#include "support/simulated_server.h"
#include "support/tls_front.h"

namespace septet {
namespace {

using test::CertificateAuthority;
using test::Pem;
using test::PerfTest;
using test::TlsFront;
using testing::AllOf;
using testing::HasSubstr;

class PerfTlsTest : public PerfTest {
 protected:
  PerfTlsTest() {
    write("ca.pem", authority_.certificate());
    write("other.pem", other_authority_.certificate());
    const Pem client = authority_.issue("client of the test");
    write("client.pem", client.certificate);
    write("key.pem", client.key);
    write("both.pem", client.certificate + client.key);
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }
  Pem for_localhost() const { return authority_.issue("server", "DNS:localhost,IP:127.0.0.1"); }
  static std::string https(const TlsFront& front, const std::string& host = "127.0.0.1") {
    return "https://" + host + ":" + std::to_string(front.endpoint().port);
  }
  static std::string plain(const TlsFront& front) {
    return "localhost:" + std::to_string(front.endpoint().port);
  }
  int short_run(std::vector<std::string> words) {
    words.insert(words.end(), {"--request-count", "40"});
    return run(words);
  }

  CertificateAuthority authority_;
  CertificateAuthority other_authority_;
};

TEST_F(PerfTlsTest, HttpsIsMeasuredWhenTheAuthorityIsKnown) {
  const test::SimulatedServer server({});
  const TlsFront front(server.endpoint(), {.identity = for_localhost()});

  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const int code = short_run({"-u", https(front, host), "--ssl-https-ca-certificates-file",
                                file("ca.pem"), "--concurrency-range", "4"});

    EXPECT_EQ(code, 0) << output_;
    EXPECT_THAT(output_, HasSubstr("Request count: 40\n"));
  }
  EXPECT_EQ(front.asked_host(), "localhost");
  EXPECT_THAT(server.last_request(), HasSubstr("Host: localhost:"));
}

TEST_F(PerfTlsTest, ACertificateOfAnotherAuthorityEndsTheRunUnlessThePeerIsNotVerified) {
  const test::SimulatedServer server({});
  const TlsFront front(server.endpoint(), {.identity = for_localhost()});

  const int unknown =
      short_run({"-u", https(front), "--ssl-https-ca-certificates-file", file("other.pem")});

  EXPECT_EQ(unknown, 1) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("certificate is not trusted"), HasSubstr("--ssl-")));
  EXPECT_EQ(server.requests(), 0U);
  EXPECT_EQ(short_run({"-u", https(front), "--ssl-https-verify-peer", "0"}), 0) << output_;
}

TEST_F(PerfTlsTest, ACertificateForAnotherHostEndsTheRunUnlessTheHostIsNotVerified) {
  const test::SimulatedServer server({});
  const TlsFront front(server.endpoint(), {.identity = authority_.issue("s", "DNS:elsewhere")});

  const int wrong =
      short_run({"-u", https(front), "--ssl-https-ca-certificates-file", file("ca.pem")});

  EXPECT_EQ(wrong, 1) << output_;
  EXPECT_THAT(output_, HasSubstr("certificate is not for '127.0.0.1'"));
  EXPECT_EQ(short_run({"-u", https(front), "--ssl-https-ca-certificates-file", file("ca.pem"),
                       "--ssl-https-verify-host", "0"}),
            0)
      << output_;
}

TEST_F(PerfTlsTest, TheClientShowsItsCertificateOverHttp) {
  const test::SimulatedServer server({});
  const TlsFront front(server.endpoint(),
                       {.identity = for_localhost(), .client_authority = authority_.certificate()});
  const std::vector<std::string> target = {"-u", https(front), "--ssl-https-ca-certificates-file",
                                           file("ca.pem")};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), target.begin(), target.end());
    return words;
  };

  EXPECT_EQ(short_run(with({})), 1) << output_;
  EXPECT_THAT(output_, HasSubstr("certificate required"));
  EXPECT_EQ(
      short_run(with({"--ssl-https-client-certificate-file", file("client.pem"),
                      "--ssl-https-client-certificate-type", "PEM", "--ssl-https-private-key-file",
                      file("key.pem"), "--ssl-https-private-key-type", "PEM"})),
      0)
      << output_;
  EXPECT_EQ(front.client_name(), "client of the test");
  EXPECT_EQ(short_run(with({"--ssl-https-client-certificate-file", file("both.pem")})), 0)
      << output_;
}

TEST_F(PerfTlsTest, GrpcIsMeasuredThroughTlsWithAClientCertificate) {
  const test::SimulatedGrpcServer server;
  const TlsFront front(server.endpoint(),
                       {.identity = for_localhost(), .client_authority = authority_.certificate()});

  for (const std::vector<std::string>& style :
       {std::vector<std::string>{}, std::vector<std::string>{"--streaming"}}) {
    std::vector<std::string> words = {"-i",
                                      "grpc",
                                      "-u",
                                      plain(front),
                                      "--ssl-grpc-use-ssl",
                                      "--ssl-grpc-root-certifications-file",
                                      file("ca.pem"),
                                      "--ssl-grpc-private-key-file",
                                      file("key.pem"),
                                      "--ssl-grpc-certificate-chain-file",
                                      file("client.pem")};
    words.insert(words.end(), style.begin(), style.end());

    EXPECT_EQ(short_run(words), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("Request count: 40\n"));
  }
  EXPECT_EQ(front.client_name(), "client of the test");
}

TEST_F(PerfTlsTest, WhatIsWrongWithTlsIsSaid) {
  const test::SimulatedServer server({});
  const TlsFront front(server.endpoint(), {.identity = for_localhost(), .offers_http2 = false});

  // A server that speaks no TLS.
  const test::SimulatedGrpcServer plain_server;
  EXPECT_EQ(short_run({"-i", "grpc", "-u", plain_server.endpoint().text(), "--ssl-grpc-use-ssl"}),
            1)
      << output_;
  EXPECT_THAT(output_, HasSubstr("cannot speak TLS with"));
  // One that speaks no HTTP/2 through it.
  EXPECT_EQ(short_run({"-i", "grpc", "-u", plain(front), "--ssl-grpc-use-ssl",
                       "--ssl-grpc-root-certifications-file", file("ca.pem")}),
            1)
      << output_;
  EXPECT_THAT(output_, HasSubstr("no HTTP/2 through TLS"));
  // A file that is not there, and one that is no certificate.
  EXPECT_EQ(short_run({"-u", https(front), "--ssl-https-ca-certificates-file", file("none.pem")}),
            2)
      << output_;
  EXPECT_THAT(output_, HasSubstr(file("none.pem")));
  EXPECT_EQ(short_run({"-u", https(front), "--ssl-https-client-certificate-file", file("key.pem")}),
            2)
      << output_;
  EXPECT_THAT(output_, HasSubstr(file("key.pem")));
}

// septet's own server, both protocols.
TEST_F(PerfTlsTest, SeptetServeIsMeasuredThroughTls) {
  if (const auto why = test::cannot_serve("digits")) {
    GTEST_SKIP() << *why;
  }
  const Pem identity = for_localhost();
  write("server.pem", identity.certificate);
  write("server-key.pem", identity.key);
  test::SeptetRun server(
      folder_, "serve",
      {"serve", "--model-repository", std::string(SEPTET_SOURCE_DIR) + "/models", "--model",
       "digits", "--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--http-server-cert",
       file("server.pem"), "--http-server-key", file("server-key.pem"), "--grpc-server-cert",
       file("server.pem"), "--grpc-server-key", file("server-key.pem")});
  ASSERT_TRUE(test::eventually(seconds(60), [&] {
    return server.output().find("septet: ready\n") != std::string::npos;
  })) << server.output();
  const auto port_after = [&](const std::string& words) {
    const std::string text = server.output();
    const std::size_t at = text.find(words) + words.size();
    return text.substr(at, text.find_first_not_of("0123456789", at) - at);
  };
  const auto measure = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"perf", "-m", "digits", "--request-count", "40"});
    test::SeptetRun perf(folder_, "perf", words);
    const auto status = perf.wait(seconds(120));
    EXPECT_TRUE(status && status->code == 0) << perf.output();
  };

  measure({"-u", "https://localhost:" + port_after("listening on 127.0.0.1:"),
           "--ssl-https-ca-certificates-file", file("ca.pem")});
  measure({"-i", "grpc", "-u", "localhost:" + port_after("gRPC on 127.0.0.1:"),
           "--ssl-grpc-use-ssl", "--ssl-grpc-root-certifications-file", file("ca.pem"),
           "--shared-memory", "system"});
}

}  // namespace
}  // namespace septet

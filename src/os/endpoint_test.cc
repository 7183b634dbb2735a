#include "os/endpoint.h"

#include <gtest/gtest.h>

namespace septet::os {
namespace {

TEST(ParseEndpoint, UnderstandsEveryForm) {
  EXPECT_EQ(parse_endpoint("localhost:8000", 1)->text(), "localhost:8000");
  EXPECT_EQ(parse_endpoint("localhost", 8000)->text(), "localhost:8000");
  EXPECT_EQ(parse_endpoint("http://10.0.0.1:9/", 1)->text(), "10.0.0.1:9");
  EXPECT_EQ(parse_endpoint("[::1]:80", 1)->text(), "[::1]:80");
  EXPECT_EQ(parse_endpoint("unix:/run/a", 1)->text(), "unix:/run/a");
  EXPECT_EQ(parse_endpoint(":8000", 1)->host, "");
}

TEST(ParseEndpoint, RefusesABadPort) {
  EXPECT_FALSE(parse_endpoint("host:99999", 1).ok());
  EXPECT_FALSE(parse_endpoint("host:x", 1).ok());
}

TEST(ListenOn, SaysThatThePortIsInUse) {
  const Result<UniqueFd> first = listen_on(Endpoint{"127.0.0.1", 0, ""});
  ASSERT_TRUE(first.ok());
  const Endpoint taken = local_endpoint(first->get());

  const Result<UniqueFd> second = listen_on(taken);

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kPrecondition);
  EXPECT_NE(second.error().message.find(std::to_string(taken.port)), std::string::npos);
}

TEST(ListenOn, ReplacesAStaleUnixSocketAndRefusesALiveOne) {
  const std::string path = testing::TempDir() + "/septet_endpoint_" + std::to_string(getpid());
  const Endpoint endpoint{"", 0, path};
  { ASSERT_TRUE(listen_on(endpoint).ok()); }

  const Result<UniqueFd> again = listen_on(endpoint);
  const Result<UniqueFd> third = listen_on(endpoint);

  EXPECT_TRUE(again.ok());
  EXPECT_FALSE(third.ok());
  ::unlink(path.c_str());
}

TEST(ConnectTo, ReachesAListener) {
  const Result<UniqueFd> listener = listen_on(Endpoint{"127.0.0.1", 0, ""});
  ASSERT_TRUE(listener.ok());

  const Result<UniqueFd> client = connect_to(local_endpoint(listener->get()), 1000);

  EXPECT_TRUE(client.ok());
  EXPECT_TRUE(accept_from(listener->get()).valid());
}

TEST(ReachableAddress, OfLocalhostIsTheAddressThatAnswers) {
  const Result<UniqueFd> listener = listen_on(Endpoint{"127.0.0.1", 0, ""});
  ASSERT_TRUE(listener.ok());
  const Endpoint real = local_endpoint(listener->get());

  const Result<Endpoint> found = reachable_address(Endpoint{"localhost", real.port, ""}, 1000);

  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*found, real);
}

TEST(ReachableAddress, SaysSoWhenNothingAnswers) {
  Endpoint closed;
  {
    const Result<UniqueFd> listener = listen_on(Endpoint{"127.0.0.1", 0, ""});
    ASSERT_TRUE(listener.ok());
    closed = local_endpoint(listener->get());
  }

  const Result<Endpoint> found = reachable_address(closed, 1000);

  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::kPrecondition);
}

}  // namespace
}  // namespace septet::os

#include "measure/edge/client_transport.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/check.h"

namespace septet::measure {

namespace {

template <auto free_it>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free_it(object);
  }
};

// One record of TLS; pieces of a request are put together up to it.
constexpr std::size_t kRecordBytes = 16 * 1024;

// The reason of OpenSSL's oldest error, which is the one that led to the others.
std::string take_reason() {
  const unsigned long code = ::ERR_peek_error();
  const char* reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  const std::string text = reason != nullptr ? reason : std::strerror(errno);
  ::ERR_clear_error();
  return text;
}

Error refuse(const std::string& what, const std::string& file) {
  return make_error(ErrorKind::kUsage, fmt::format("{} {}: {}", what, file, take_reason()),
                    "check the path and whether the file is PEM or DER");
}

// A socket for OpenSSL whose writes raise no signal when the server has gone.
int write_socket(BIO* bio, const char* data, int size) {
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(::BIO_get_data(bio)));
  ::BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(fd, data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    ::BIO_set_retry_write(bio);
  }
  return static_cast<int>(sent);
}

int read_socket(BIO* bio, char* data, int size) {
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(::BIO_get_data(bio)));
  ::BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(fd, data, static_cast<std::size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    ::BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

long control_socket(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

bool certificate_is_for(SSL* ssl, const std::string& host) {
  const std::unique_ptr<X509, Free<X509_free>> certificate(::SSL_get1_peer_certificate(ssl));
  if (!certificate) {
    return false;
  }
  return is_address(host)
             ? ::X509_check_ip_asc(certificate.get(), host.c_str(), 0) == 1
             : ::X509_check_host(certificate.get(), host.c_str(), host.size(), 0, nullptr) == 1;
}

int file_type(TlsFileType type) {
  return type == TlsFileType::kPem ? SSL_FILETYPE_PEM : SSL_FILETYPE_ASN1;
}

}  // namespace

struct TlsContext::Parts {
  std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> ssl;
  std::unique_ptr<BIO_METHOD, Free<BIO_meth_free>> socket;
  bool verify_host = true;
  Protocol protocol = Protocol::kHttp1;

  Result<Ok> show_certificate(const TlsOptions& options) {
    const std::string& file = options.certificate_file;
    const int used =
        options.certificate_type == TlsFileType::kPem
            ? ::SSL_CTX_use_certificate_chain_file(ssl.get(), file.c_str())
            : ::SSL_CTX_use_certificate_file(ssl.get(), file.c_str(), SSL_FILETYPE_ASN1);
    if (used != 1) {
      return refuse("cannot read the client's certificate", file);
    }
    const std::string& key = options.key_file.empty() ? file : options.key_file;
    if (::SSL_CTX_use_PrivateKey_file(ssl.get(), key.c_str(), file_type(options.key_type)) != 1 ||
        ::SSL_CTX_check_private_key(ssl.get()) != 1) {
      return refuse("cannot use the client's private key", key);
    }
    return Ok{};
  }
};

TlsContext::TlsContext() : parts_(std::make_unique<Parts>()) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<const TlsContext>> TlsContext::create(const TlsOptions& options,
                                                             Protocol protocol) {
  ::ERR_clear_error();
  const std::shared_ptr<TlsContext> context(new TlsContext);  // its constructor is private
  Parts& parts = *context->parts_;
  parts.verify_host = options.verify_host;
  parts.protocol = protocol;
  parts.socket.reset(::BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "client socket"));
  CHECK(parts.socket != nullptr);
  ::BIO_meth_set_write(parts.socket.get(), &write_socket);
  ::BIO_meth_set_read(parts.socket.get(), &read_socket);
  ::BIO_meth_set_ctrl(parts.socket.get(), &control_socket);
  parts.ssl.reset(::SSL_CTX_new(::TLS_client_method()));
  SSL_CTX* ssl = parts.ssl.get();
  CHECK(ssl != nullptr);
  ::SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
  // A server that just closes has ended its answer; HTTP says whether too early.
  ::SSL_CTX_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_verify(ssl, options.verify_peer ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options.authorities_file.empty()) {
    ::SSL_CTX_set_default_verify_paths(ssl);
  } else if (::SSL_CTX_load_verify_file(ssl, options.authorities_file.c_str()) != 1) {
    return refuse("cannot read the authorities' certificates", options.authorities_file);
  }
  if (!options.certificate_file.empty()) {
    SEPTET_TRY(parts.show_certificate(options));
  }
  const std::string_view offer = protocol == Protocol::kHttp2 ? "\x02h2" : "\x08http/1.1";
  CHECK(::SSL_CTX_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(offer.data()),
                                  static_cast<unsigned>(offer.size())) == 0);
  return std::shared_ptr<const TlsContext>(context);
}

struct ClientTransport::Tls {
  TlsPeer peer;
  std::unique_ptr<SSL, Free<SSL_free>> ssl;
  std::string joined;   // the parts of one send
  std::string failure;  // why the connection is of no use any more

  bool speaks_http2() const {
    const unsigned char* name = nullptr;
    unsigned length = 0;
    ::SSL_get0_alpn_selected(ssl.get(), &name, &length);
    return length == 2 && std::memcmp(name, "h2", 2) == 0;
  }

  // A server that refuses the client says why and closes; a request on its way to it then fails
  // before its words were read.
  void look_for_alert() {
    char byte = 0;
    if (::SSL_read(ssl.get(), &byte, 1) <= 0 && ::ERR_peek_error() != 0) {
      failure = "TLS: " + take_reason();
    }
    ::ERR_clear_error();
    errno = EPROTO;
  }

  // The answer of recv or send that a failed SSL call stands for.
  ssize_t failed(int result) {
    switch (::SSL_get_error(ssl.get(), result)) {
      case SSL_ERROR_ZERO_RETURN:
        ::ERR_clear_error();
        return 0;
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        ::ERR_clear_error();
        errno = EAGAIN;
        return -1;
      default:
        failure = "TLS: " + take_reason();
        errno = EPROTO;
        return -1;
    }
  }
};

ClientTransport::ClientTransport(os::EventLoop& loop, int fd, const TlsPeer& peer)
    : loop_(loop), fd_(fd) {
  if (!peer.context) {
    return;
  }
  const TlsContext::Parts& parts = *peer.context->parts_;
  tls_ = std::make_unique<Tls>();
  tls_->peer = peer;
  tls_->ssl.reset(::SSL_new(parts.ssl.get()));
  BIO* socket = ::BIO_new(parts.socket.get());
  CHECK(tls_->ssl != nullptr && socket != nullptr);
  ::BIO_set_data(socket, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  ::BIO_set_init(socket, 1);
  ::SSL_set_bio(tls_->ssl.get(), socket, socket);
  if (!is_address(peer.host)) {
    // What SSL_set_tlsext_host_name stands for; the macro has an old-style cast.
    ::SSL_ctrl(tls_->ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(peer.host.c_str()));
  }
  ::SSL_set_connect_state(tls_->ssl.get());
}

ClientTransport::~ClientTransport() = default;

ClientTransport::Opening ClientTransport::open() {
  if (!tls_) {
    return Opening::kOpen;
  }
  const TlsContext::Parts& parts = *tls_->peer.context->parts_;
  SSL* ssl = tls_->ssl.get();
  const int done = ::SSL_do_handshake(ssl);
  if (done != 1) {
    return failed_step(done);
  }
  if (parts.verify_host && !certificate_is_for(ssl, tls_->peer.host)) {
    tls_->failure = fmt::format("its certificate is not for '{}'", tls_->peer.host);
    return Opening::kFailed;
  }
  if (parts.protocol == TlsContext::Protocol::kHttp2 && !tls_->speaks_http2()) {
    tls_->failure = "it offers no HTTP/2 through TLS";
    return Opening::kFailed;
  }
  return Opening::kOpen;
}

ClientTransport::Opening ClientTransport::failed_step(int result) {
  SSL* ssl = tls_->ssl.get();
  switch (::SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
      wait_for(EPOLLIN);
      return Opening::kUnderWay;
    case SSL_ERROR_WANT_WRITE:
      wait_for(EPOLLIN | EPOLLOUT);
      return Opening::kUnderWay;
    case SSL_ERROR_ZERO_RETURN:
      tls_->failure = "it closed the connection in the middle of the handshake";
      return Opening::kFailed;
    default:
      break;
  }
  const long verdict = ::SSL_get_verify_result(ssl);
  tls_->failure = verdict == X509_V_OK ? "TLS: " + take_reason()
                                       : fmt::format("its certificate is not trusted: {}",
                                                     ::X509_verify_cert_error_string(verdict));
  ::ERR_clear_error();
  return Opening::kFailed;
}

void ClientTransport::wait_for(std::uint32_t events) {
  const bool room = (events & EPOLLOUT) != 0;
  if (room != waits_for_room_) {
    loop_.change(fd_, events);
    waits_for_room_ = room;
  }
}

ssize_t ClientTransport::receive(void* to, std::size_t size) {
  if (!tls_) {
    return ::recv(fd_, to, size, 0);
  }
  const int most = static_cast<int>(std::min<std::size_t>(size, INT32_MAX));
  const int got = ::SSL_read(tls_->ssl.get(), to, most);
  return got > 0 ? got : tls_->failed(got);
}

ssize_t ClientTransport::send(std::span<const iovec> parts) {
  if (!tls_) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());  // the call reads them only
    message.msg_iovlen = parts.size();
    return ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  }
  std::string_view bytes(static_cast<const char*>(parts[0].iov_base), parts[0].iov_len);
  if (parts.size() > 1 && bytes.size() < kRecordBytes) {
    // One record, and so one packet, for head and small body.
    tls_->joined.clear();
    for (const iovec& part : parts) {
      const std::size_t room = kRecordBytes - tls_->joined.size();
      tls_->joined.append(static_cast<const char*>(part.iov_base), std::min(room, part.iov_len));
    }
    bytes = tls_->joined;
  }
  const int most = static_cast<int>(std::min<std::size_t>(bytes.size(), INT32_MAX));
  const int sent = ::SSL_write(tls_->ssl.get(), bytes.data(), most);
  if (sent > 0) {
    return sent;
  }
  if (tls_->failed(sent) == 0) {
    errno = EPIPE;
  } else if (errno != EAGAIN) {
    tls_->look_for_alert();
  }
  return -1;
}

std::string ClientTransport::failure() const {
  return tls_ && !tls_->failure.empty() ? tls_->failure : std::strerror(errno);
}

}  // namespace septet::measure

#include "inference/edge/tls_stream.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/check.h"
#include "os/durable_file.h"

namespace septet::inference {

namespace {

template <auto free_it>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free_it(object);
  }
};

using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

constexpr std::size_t kMostPemBytes = std::size_t{1} << 20;
constexpr std::size_t kRecordBytes = 16 * 1024;  // of data in one record, at most

// The best first, as ALPN writes it (RFC 7301 3.1).
constexpr std::array<unsigned char, 12> kProtocols = {2,   'h', '2', 8,   'h', 't',
                                                      't', 'p', '/', '1', '.', '1'};

Bio reader_of(const std::string& text) {
  return Bio(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Error refuse(const std::string& what) {
  const unsigned long code = ::ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ::ERR_reason_error_string(code);
  ::ERR_clear_error();
  return make_error(ErrorKind::kUsage, what + (reason == nullptr ? "" : std::string(": ") + reason),
                    "give PEM files: the certificate with its chain, and its private key");
}

int choose_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_bytes,
                    const unsigned char* offered, unsigned offered_bytes, void* /*nothing*/) {
  unsigned char* best = nullptr;
  const int result = ::SSL_select_next_proto(&best, chosen_bytes, kProtocols.data(),
                                             kProtocols.size(), offered, offered_bytes);
  *chosen = best;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

struct TlsIdentity::Context {
  std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> ssl;
};

TlsIdentity::TlsIdentity() : context_(std::make_unique<Context>()) {}
TlsIdentity::~TlsIdentity() = default;

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::from_pem(const std::string& certificates,
                                                                 const std::string& private_key,
                                                                 Protocols protocols) {
  ::ERR_clear_error();
  const std::shared_ptr<TlsIdentity> identity(new TlsIdentity);  // its constructor is private
  auto& context = identity->context_->ssl;
  context.reset(::SSL_CTX_new(::TLS_server_method()));
  CHECK(context != nullptr);
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
  if (protocols == Protocols::kHttp1And2) {
    ::SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  }
  const Bio chain = reader_of(certificates);
  const Certificate own(::PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  if (!own || ::SSL_CTX_use_certificate(context.get(), own.get()) != 1) {
    return refuse("cannot read the TLS certificate");
  }
  while (X509* next = ::PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
    ::SSL_CTX_add0_chain_cert(context.get(), next);
  }
  ::ERR_clear_error();  // the end of the chain counts as one
  const Bio key_text = reader_of(private_key);
  const Key key(::PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (!key || ::SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 ||
      ::SSL_CTX_check_private_key(context.get()) != 1) {
    return refuse("cannot use the private key with the TLS certificate");
  }
  return std::shared_ptr<const TlsIdentity>(identity);
}

Result<std::shared_ptr<const TlsIdentity>> TlsIdentity::from_files(const std::string& certificates,
                                                                   const std::string& private_key,
                                                                   Protocols protocols) {
  if (certificates.empty() && private_key.empty()) {
    return std::shared_ptr<const TlsIdentity>();
  }
  if (certificates.empty() || private_key.empty()) {
    return make_error(ErrorKind::kUsage, "TLS needs both a certificate and its private key",
                      "name the file of each");
  }
  const auto certificate_text = os::read_whole_file(certificates, kMostPemBytes);
  if (!certificate_text.ok()) {
    return certificate_text.error();
  }
  const auto key_text = os::read_whole_file(private_key, kMostPemBytes);
  if (!key_text.ok()) {
    return key_text.error();
  }
  return from_pem(*certificate_text, *key_text, protocols);
}

struct TlsStream::Connection {
  std::unique_ptr<SSL, Free<SSL_free>> ssl;

  // The answer of recv or send that a failed SSL call stands for.
  ssize_t failure(int result) const {
    const int error = ::SSL_get_error(ssl.get(), result);
    ::ERR_clear_error();
    switch (error) {
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      // The first flight of a handshake fits into an empty socket buffer, so waiting for input
      // alone cannot stall; where it does, the deadline of the head ends the connection.
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
      default:
        errno = EPROTO;
        return -1;
    }
  }
  ssize_t write(const void* from, std::size_t size) const {
    const int most = static_cast<int>(std::min<std::size_t>(size, INT_MAX));
    const int sent = ::SSL_write(ssl.get(), from, most);
    if (sent > 0) {
      return sent;
    }
    const ssize_t failed = failure(sent);
    errno = failed == 0 ? EPIPE : errno;
    return -1;
  }
};

TlsStream::TlsStream(int fd, const TlsIdentity& identity)
    : connection_(std::make_unique<Connection>()) {
  connection_->ssl.reset(::SSL_new(identity.context_->ssl.get()));
  CHECK(connection_->ssl != nullptr && ::SSL_set_fd(connection_->ssl.get(), fd) == 1);
  ::SSL_set_accept_state(connection_->ssl.get());
}

TlsStream::~TlsStream() = default;

ssize_t TlsStream::receive(void* to, std::size_t size) {
  const int most = static_cast<int>(std::min<std::size_t>(size, INT_MAX));
  const int got = ::SSL_read(connection_->ssl.get(), to, most);
  return got > 0 ? got : connection_->failure(got);
}

bool TlsStream::has_received() const { return ::SSL_pending(connection_->ssl.get()) > 0; }

ssize_t TlsStream::send(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) {
    size += part.iov_len;
  }
  if (parts.size() == 1 || size > kRecordBytes) {
    return connection_->write(parts[0].iov_base, parts[0].iov_len);
  }
  // A head and its small body are one record.
  std::array<char, kRecordBytes> record;
  char* end = record.data();
  for (const iovec& part : parts) {
    std::memcpy(end, part.iov_base, part.iov_len);
    end += part.iov_len;
  }
  return connection_->write(record.data(), size);
}

void TlsStream::finish_sending() {
  ::SSL_shutdown(connection_->ssl.get());
  ::ERR_clear_error();
}

}  // namespace septet::inference

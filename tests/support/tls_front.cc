#include "support/tls_front.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace septet::test {

namespace {

X509* read_certificate(const std::string& pem) {
  BIO* bio = ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = ::PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  ::BIO_free(bio);
  CHECK(certificate != nullptr);
  return certificate;
}

int choose_protocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* length,
                    const unsigned char* offered, unsigned offered_length, void* http2) {
  const std::string_view known = http2 != nullptr ? "\x02h2\x08http/1.1" : "\x08http/1.1";
  unsigned char* chosen = nullptr;
  const int result =
      ::SSL_select_next_proto(&chosen, length, reinterpret_cast<const unsigned char*>(known.data()),
                              static_cast<unsigned>(known.size()), offered, offered_length);
  *out = chosen;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

void make_blocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK); }

}  // namespace

class TlsFront::Impl {
 public:
  Impl(os::Endpoint backend, const TlsFrontOptions& options) : backend_(std::move(backend)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's writes raise it
    context_ = ::SSL_CTX_new(::TLS_server_method());
    X509* own = read_certificate(options.identity.certificate);
    CHECK(::SSL_CTX_use_certificate(context_, own) == 1);
    ::X509_free(own);
    BIO* bio = ::BIO_new_mem_buf(options.identity.key.data(),
                                 static_cast<int>(options.identity.key.size()));
    EVP_PKEY* key = ::PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    CHECK(::SSL_CTX_use_PrivateKey(context_, key) == 1);
    ::EVP_PKEY_free(key);
    ::BIO_free(bio);
    if (!options.client_authority.empty()) {
      X509* authority = read_certificate(options.client_authority);
      ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(context_), authority);
      ::X509_free(authority);
      ::SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    ::SSL_CTX_set_alpn_select_cb(context_, &choose_protocol,
                                 options.offers_http2 ? static_cast<void*>(this) : nullptr);
    ::SSL_CTX_clear_mode(context_, SSL_MODE_AUTO_RETRY);
    listener_ = os::listen_on(os::Endpoint{"127.0.0.1", 0, ""}).value();
    endpoint_ = os::local_endpoint(listener_.get());
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~Impl() {
    stop_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) {
        ::shutdown(fd, SHUT_RDWR);
      }
    }
    for (std::thread& thread : threads_) {
      thread.join();
    }
    ::SSL_CTX_free(context_);
  }

  os::Endpoint endpoint_;
  mutable std::mutex mutex_;  // guards the three below
  std::string client_name_;
  std::string asked_host_;
  std::vector<int> open_;

 private:
  void accept_all() {
    while (!stop_) {
      pollfd waiting{listener_.get(), POLLIN, 0};
      ::poll(&waiting, 1, -1);
      for (os::UniqueFd fd = os::accept_from(listener_.get()); fd.valid();
           fd = os::accept_from(listener_.get())) {
        const std::lock_guard lock(mutex_);
        open_.push_back(fd.get());
        threads_.emplace_back(
            [this, client = std::make_shared<os::UniqueFd>(std::move(fd))] { serve(*client); });
      }
    }
  }

  void note(SSL* ssl) {
    const std::lock_guard lock(mutex_);
    const char* host = ::SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    asked_host_ = host == nullptr ? "" : host;
    client_name_.clear();
    if (X509* shown = ::SSL_get1_peer_certificate(ssl)) {
      std::array<char, 100> name{};
      ::X509_NAME_get_text_by_NID(::X509_get_subject_name(shown), NID_commonName, name.data(),
                                  static_cast<int>(name.size()));
      client_name_ = name.data();
      ::X509_free(shown);
    }
  }

  void serve(os::UniqueFd& client) {
    make_blocking(client.get());
    SSL* ssl = ::SSL_new(context_);
    ::SSL_set_fd(ssl, client.get());
    if (::SSL_accept(ssl) == 1) {
      note(ssl);
      if (const Result<os::UniqueFd> backend = os::connect_to(backend_, 5000); backend.ok()) {
        make_blocking(backend->get());
        pass_on(ssl, client.get(), backend->get());
      }
      ::SSL_shutdown(ssl);
    }
    ::SSL_free(ssl);
    const std::lock_guard lock(mutex_);
    std::erase(open_, client.get());
    client.reset();
  }

  static void pass_on(SSL* ssl, int client, int backend) {
    std::array<char, 16 * 1024> bytes{};
    for (;;) {
      std::array<pollfd, 2> waiting = {{{client, POLLIN, 0}, {backend, POLLIN, 0}}};
      ::poll(waiting.data(), waiting.size(), -1);
      if (waiting[0].revents != 0) {
        const int got = ::SSL_read(ssl, bytes.data(), static_cast<int>(bytes.size()));
        if (got <= 0 && ::SSL_get_error(ssl, got) != SSL_ERROR_WANT_READ) {
          return;
        }
        if (got > 0 &&
            ::send(backend, bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) {
          return;
        }
      }
      if (waiting[1].revents != 0) {
        const ssize_t got = ::recv(backend, bytes.data(), bytes.size(), 0);
        if (got <= 0 || ::SSL_write(ssl, bytes.data(), static_cast<int>(got)) <= 0) {
          return;
        }
      }
    }
  }

  os::Endpoint backend_;
  SSL_CTX* context_ = nullptr;
  os::UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::thread acceptor_;
  std::vector<std::thread> threads_;
};

TlsFront::TlsFront(const os::Endpoint& backend, const TlsFrontOptions& options)
    : impl_(std::make_unique<Impl>(backend, options)) {}
TlsFront::~TlsFront() = default;

os::Endpoint TlsFront::endpoint() const { return impl_->endpoint_; }
std::string TlsFront::client_name() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->client_name_;
}
std::string TlsFront::asked_host() const {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->asked_host_;
}

}  // namespace septet::test

#include "serve/edge/onnx_session.h"

namespace septet::serve {

Result<std::unique_ptr<OnnxEngine>> OnnxEngine::start(void* /*get_api_base*/) {
  return make_error(ErrorKind::kPrecondition,
                    "septet was built without the headers of ONNX Runtime",
                    "run scripts/setup and build again");
}

}  // namespace septet::serve

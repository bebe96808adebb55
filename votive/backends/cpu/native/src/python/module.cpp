// The Python module. Built once per instruction-set level, each a module of its own.
#define VT_OWNS_NUMPY
#include "api.h"
#include "device.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "../kernels/quantized.h"
#include "../vt/elementwise.h"
#include "../vt/kernel.h"

namespace nb = nanobind;

static int load_numpy() {
  import_array1(-1);
  return 0;
}

#define VT_MODULE_(name, m) NB_MODULE(name, m)
#define VT_MODULE(name, m) VT_MODULE_(name, m)

VT_MODULE(VT_MODULE_NAME, m) {
  if (load_numpy() < 0) throw nb::python_error();
  vt::intern_names();
  m.attr("level") = VT_LEVEL;
#if defined(__clang__)
  m.attr("compiler") = __VERSION__;
#else
  m.attr("compiler") = "GCC " __VERSION__;
#endif
  for (auto [name, type] : {std::pair("Block", vt::block_type()), std::pair("Elementwise", vt::elementwise_type()),
                            std::pair("Launch", vt::launch_type()), std::pair("MapReduce", vt::map_reduce_type()), std::pair("Kernel", vt::kernel_type()),
                            std::pair("Operator", vt::operator_type()), std::pair("Window", vt::window_type()),
                            std::pair("LateStorage", vt::late_storage_type()),
                            std::pair("Launcher", vt::launcher_type()), std::pair("DeviceFormula", vt::device_formula_type()),
                            std::pair("DeviceResults", vt::device_results_type()), std::pair("DeviceProduct", vt::device_product_type())}) {
    if (type == nullptr) throw nb::python_error();
    m.attr(name) = nb::borrow(reinterpret_cast<PyObject*>(type));
  }
  m.def("install_calls", [](nb::handle tensor, nb::handle plan, nb::handle state, nb::handle mode) {
    if (!vt::install_calls(tensor.ptr(), plan.ptr(), state.ptr(), mode.ptr())) throw nb::python_error();
  });
  static PyMethodDef item = {"item", [](PyObject*, PyObject* a) { return vt::item_of(a); }, METH_O,
                             "item(array): its only element as a Python number."};
  m.attr("item") = nb::steal(PyCFunction_New(&item, nullptr));
  m.def("install_record", [](nb::handle node, nb::handle saved, nb::handle edge, nb::handle sequence,
                             nb::handle ever, nb::handle edge_of, nb::handle mode) {
    if (!vt::install_record(node.ptr(), saved.ptr(), edge.ptr(), sequence.ptr(), ever.ptr(), edge_of.ptr(), mode.ptr()))
      throw nb::python_error();
  });
  m.def("install_recall", [](nb::handle dtype, nb::handle stack) { vt::install_recall(dtype.ptr(), stack.ptr()); });
  m.def("set_unusual", [](bool on) { vt::unusual = on; });
  m.def("set_wrapped", [](nb::handle cls) { vt::wrapped = reinterpret_cast<PyTypeObject*>(cls.inc_ref().ptr()); });
  m.attr("cut") = nb::steal(vt::cut_function());
  m.def("install_windows", [](nb::handle mode, nb::handle table, nb::handle make) {
    vt::install_windows(mode.ptr(), table.ptr(), make.ptr());
  });
  m.def("install_device", [](nb::tuple classes) {
    if (nb::len(classes) != 5 || !vt::install_device(classes.ptr())) throw nb::python_error();
  });
  m.attr("new_view") = nb::steal(vt::new_view_function());
  m.def("device_give", [](nb::handle cls) { return nb::steal(vt::device_give(cls.ptr())); });
  m.def("set_current", [](int device, uint64_t stream, nb::handle pool) { vt::set_current(device, stream, pool.ptr()); });
  m.def("set_space", &vt::set_space);
  m.def("set_forked", &vt::set_forked);
  m.def("set_launch", &vt::set_launch);
  m.def("num_threads", &vt::num_threads);
  m.def("set_num_threads", &vt::set_num_threads, nb::call_guard<nb::gil_scoped_release>());
  m.def("has_kernel", [](const std::string& name) { return vt::find_kernel(name) != nullptr; });
  // Block formats in the order of their numbers: name, elements and bytes of a block.
  m.def("block_formats", [] {
    nb::list out;
    for (int64_t i = 0; i < vt::blocks::formats(); ++i) {
      const vt::blocks::Format& f = vt::blocks::format(i);
      out.append(nb::make_tuple(f.name, f.size, f.bytes));
    }
    return out;
  });
  m.def("has_tile", [](const std::string& name, int compute) {
    return vt::find_tile(name, vt::Dtype(compute)) != nullptr;
  });
  // Codes of the element types, in the order of the enumeration.
  m.def("dtype_code", [](nb::handle d) {
    if (!PyArray_DescrCheck(d.ptr())) throw nb::type_error("dtype_code takes a NumPy dtype");
    return int(vt::dtype_of_descr(reinterpret_cast<PyArray_Descr*>(d.ptr())));
  });
  m.def("register_dtype", [](nb::handle d, int code) {
    vt::register_dtype(reinterpret_cast<PyArray_Descr*>(d.ptr())->type_num, vt::Dtype(code));
  });
  m.def("set_storage_class", [](nb::handle cls) { vt::set_storage_class(cls.ptr()); });
  m.def("block", [](int64_t nbytes) {
    PyObject* a = vt::new_block_array(nbytes);
    if (a == nullptr) throw nb::python_error();
    return nb::steal(a);
  });
  m.def("empty", [](nb::handle spec) {
    vt::OutSpec s;
    PyObject *storage, *array;
    if (!vt::read_spec(spec.ptr(), s)) throw nb::python_error();
    const bool ok = vt::make_result(s, &storage, &array);
    vt::clear_spec(s);
    if (!ok) throw nb::python_error();
    return nb::make_tuple(nb::steal(storage), nb::steal(array));
  });
  m.def("memory_stats", [] {
    const auto& s = vt::memory_stats();
    return nb::make_tuple(s.allocated, s.peak, s.cached, s.hits, s.misses);
  });
  m.def("count", [](int64_t n) {
    auto& s = vt::memory_stats();
    s.allocated += n;
    if (s.allocated > s.peak) s.peak = s.allocated;
  });
  m.def("reset_peak", [] { vt::memory_stats().peak = vt::memory_stats().allocated; });
  m.def("set_cache_limit", [](int64_t n) { vt::memory_stats().limit = n; });
  m.def("empty_cache", &vt::empty_cache);
}

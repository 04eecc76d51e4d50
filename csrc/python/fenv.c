/* Functions of Python that run in the default floating-point environment: pyengine._fenv.
 *
 * A wrapper in Python would take a fifth of a microsecond a call; this one takes some 50 instructions
 * beside those of the call itself.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "environment.h"

typedef struct {
    PyObject_HEAD PyObject *function, *dict, *weak;
} guarded;

static PyObject *method_type; /* types.MethodType, for which the limited API has no constructor */

static PyObject *guarded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function;
    guarded *self;

    if (kwargs != NULL && PyDict_Size(kwargs) != 0) {
        PyErr_SetString(PyExc_TypeError, "Guarded takes one function and no keywords");
        return NULL;
    }
    if (!PyArg_UnpackTuple(args, "Guarded", 1, 1, &function)) return NULL;
    if (!PyCallable_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "Guarded takes a function");
        return NULL;
    }
    self = (guarded *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(function);
    self->function = function;
    return (PyObject *)self;
}

static PyObject *guarded_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    pe_environment host;
    PyObject *result;

    pe_environment_enter(&host);
    result = PyObject_Call(((guarded *)self)->function, args, kwargs);
    pe_environment_leave(&host);
    return result;
}

static PyObject *guarded_get(PyObject *self, PyObject *object, PyObject *type) {
    (void)type;
    if (object == NULL || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
}

/* Attributes that it lacks are those of its function: __code__, __kwdefaults__ and the like. */
static PyObject *guarded_getattro(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((guarded *)self)->function, name);
    }
    return found;
}

/* The name under which a module holds it, for pickle and copy. */
static PyObject *guarded_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *guarded_repr(PyObject *self) {
    return PyObject_Repr(((guarded *)self)->function);
}

static int guarded_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((guarded *)self)->function);
    Py_VISIT(((guarded *)self)->dict);
    return 0;
}

static int guarded_clear(PyObject *self) {
    Py_CLEAR(((guarded *)self)->function);
    Py_CLEAR(((guarded *)self)->dict);
    return 0;
}

static void guarded_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((guarded *)self)->weak != NULL) PyObject_ClearWeakRefs(self);
    guarded_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef METHODS[] = {{"__reduce__", guarded_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyMemberDef MEMBERS[] = {{"__dictoffset__", T_PYSSIZET, offsetof(guarded, dict), READONLY, NULL},
                                {"__weaklistoffset__", T_PYSSIZET, offsetof(guarded, weak), READONLY, NULL},
                                {NULL, 0, 0, 0, NULL}};

static PyGetSetDef ATTRIBUTES[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot SLOTS[] = {{Py_tp_new, (void *)guarded_new},
                              {Py_tp_call, (void *)guarded_call},
                              {Py_tp_descr_get, (void *)guarded_get},
                              {Py_tp_getattro, (void *)guarded_getattro},
                              {Py_tp_repr, (void *)guarded_repr},
                              {Py_tp_traverse, (void *)guarded_traverse},
                              {Py_tp_clear, (void *)guarded_clear},
                              {Py_tp_dealloc, (void *)guarded_dealloc},
                              {Py_tp_methods, METHODS},
                              {Py_tp_members, MEMBERS},
                              {Py_tp_getset, ATTRIBUTES},
                              {0, NULL}};

static PyType_Spec SPEC = {.name = "pyengine._fenv.Guarded",
                           .basicsize = sizeof(guarded),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR,
                           .slots = SLOTS};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pyengine._fenv",
    .m_doc = "Functions that run in the default floating-point environment.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__fenv(void) {
    PyObject *module = PyModule_Create(&MODULE), *types = PyImport_ImportModule("types");
    PyObject *type = PyType_FromSpec(&SPEC);

    if (types != NULL) method_type = PyObject_GetAttrString(types, "MethodType");
    Py_XDECREF(types);
    if (module == NULL || type == NULL || method_type == NULL ||
        PyModule_AddObject(module, "Guarded", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}

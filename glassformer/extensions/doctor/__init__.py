"""Doctor: tests that find what is wrong with a checkpoint, and its parameters in numbers."""

from transformer.extensions import Extension

EXTENSION = Extension(name="doctor", looks="glassformer.extensions.doctor.doctor_look:DoctorLook")

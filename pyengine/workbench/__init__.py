"""What presents answers: tables, pictures, reports, statements, audits, pages of the papers."""
